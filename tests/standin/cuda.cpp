// A CUDA device that is not there, for the CPU build of torch: its tensors are real tensors that say `cuda:0`, with
// their memory on the CPU, and its kernels are those of the CPU. What torch does above the kernels (autograd, autocast,
// decompositions, checks of devices) is what it does on a GPU.
//
// Every operation that would launch a kernel, every copy between host and device and every wait of the host for the
// device is reported to a listener (standin/device.py), which counts them. Loaded before `import torch`.

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <set>

#include "runtime.h"

namespace standin {

using at::Tensor;
using c10::DispatchKey;
using c10::IValue;

// The same memory under the name of another device.
Tensor rename(const Tensor& tensor, c10::Storage storage, DispatchKey key) {
  auto named = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), tensor.dtype());
  named.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  if (tensor.is_conj()) named._set_conj(true);
  if (tensor.is_neg()) named._set_neg(true);
  return named;
}

Tensor to_device(const Tensor& tensor) { return rename(tensor, to_device(tensor.storage()), DispatchKey::CUDA); }
Tensor to_cpu(const Tensor& tensor) { return rename(tensor, to_cpu(tensor.storage()), DispatchKey::CPU); }

// After an operation on the twin of `tensor`: its new size and, if it has grown, its new memory.
void write_back(const Tensor& tensor, const Tensor& twin) {
  auto* impl = tensor.unsafeGetTensorImpl();
  if (to_cpu(tensor.storage()).data() != twin.storage().data() || tensor.storage().nbytes() != twin.storage().nbytes())
    impl->set_storage_keep_dtype(to_device(twin.storage()));
  if (tensor.sizes() != twin.sizes() || tensor.strides() != twin.strides())
    impl->set_sizes_and_strides(twin.sizes(), twin.strides(), twin.storage_offset());
}

// ---------------------------------------------------------------- all operations but those further down

// The host waits for these, since they return values of the device or tensors whose size depends on them.
const std::set<std::string> kSyncs = {
    "nonzero", "masked_select", "equal", "unique_dim", "unique_consecutive", "_unique2", "_unique", "repeat_interleave",
    "bincount", "histc"};
// Nothing runs on the device.
const std::set<std::string> kFree = {"resize_", "set_", "is_set_to", "is_same_size", "record_stream"};
// The CUDA kernels of these copy index tensors of the CPU to the device.
const std::set<std::string> kTakeHostIndexes = {"index", "index_put", "_index_put_impl_", "_unsafe_index"};

struct Arguments {
  std::vector<std::pair<Tensor, Tensor>> twins;  // of the device, and on the CPU
  std::vector<Tensor> host;                      // given on the CPU

  Tensor replace(const Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    if (!tensor.is_cuda()) {
      host.push_back(tensor);
      return tensor;
    }
    for (const auto& [original, twin] : twins)
      if (original.is_same(tensor)) return twin;
    twins.emplace_back(tensor, to_cpu(tensor));
    return twins.back().second;
  }

  IValue replace(const IValue& value) {
    if (value.isTensor()) return replace(value.toTensor());
    if (value.isDevice()) return value.toDevice().is_cuda() ? IValue(Device(DeviceType::CPU)) : value;
    if (value.isTensorList()) {
      c10::List<Tensor> replaced;
      for (const Tensor& tensor : value.toTensorVector()) replaced.push_back(replace(tensor));
      return replaced;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<Tensor>> replaced;
      for (const auto& tensor : value.toOptionalTensorVector())
        replaced.push_back(tensor ? std::optional<Tensor>(replace(*tensor)) : std::nullopt);
      return replaced;
    }
    return value;
  }
};

// How an operation with indexes reads them on a GPU.
struct Indexes {
  bool are_taken = false;        // indexes of the host are copied to the device
  bool has_mask = false;         // the host reads how many places of a mask on the device are true
  bool is_masked_fill = false;   // masks and a number: nothing is read or copied

  Indexes(const std::string& name, const torch::jit::Stack& stack, size_t first) {
    are_taken = kTakeHostIndexes.count(name);
    if (!are_taken) return;
    bool has_other = false;
    for (const auto& index : stack[first + 1].toOptionalTensorVector()) {
      if (!index || !index->defined()) continue;
      const bool is_mask = index->scalar_type() == at::kBool || index->scalar_type() == at::kByte;
      (is_mask && index->is_cuda() ? has_mask : has_other) = true;
    }
    if (name != "_index_put_impl_" || has_other) return;
    const Tensor value = stack[first + 2].toTensor();
    is_masked_fill = has_mask && value.numel() == 1 && !value.is_cuda();
  }
};

std::string shapes(const Arguments& arguments) {
  std::ostringstream text;
  for (const auto& [tensor, _] : arguments.twins) text << " cuda:0 " << tensor.sizes();
  for (const auto& tensor : arguments.host) text << " cpu " << tensor.sizes();
  return text.str();
}

void check_devices(const std::string& name, const Arguments& arguments, const Indexes& indexes) {
  if (indexes.is_masked_fill) return;
  for (const auto& tensor : arguments.host) {
    if (indexes.are_taken) {
      report(PAGEABLE_TO_DEVICE, name.c_str(), tensor.nbytes());
      continue;
    }
    TORCH_CHECK(
        tensor.dim() == 0 || arguments.twins.empty(),
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! (", name, ":",
        shapes(arguments), ")");
  }
}

IValue restore(const IValue& value, const Arguments& arguments) {
  if (value.isTensor()) {
    const Tensor& tensor = value.toTensor();
    if (!tensor.defined()) return value;
    for (const auto& [original, twin] : arguments.twins)
      if (twin.is_same(tensor)) return original;
    return to_device(tensor);
  }
  if (value.isTensorList()) {
    c10::List<Tensor> restored;
    for (const Tensor& tensor : value.toTensorVector())
      restored.push_back(restore(IValue(tensor), arguments).toTensor());
    return restored;
  }
  return value;
}

// Runs the kernel of the CPU on the twins of all arguments.
void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const std::string name = schema.name().substr(schema.name().find("::") + 2);
  const size_t n_arguments = schema.arguments().size();
  const Indexes indexes(name, *stack, stack->size() - n_arguments);
  Arguments arguments;
  for (auto place = stack->end() - n_arguments; place != stack->end(); ++place) *place = arguments.replace(*place);
  check_devices(name, arguments, indexes);
  if (!kFree.count(name)) report(LAUNCH, name.c_str(), 0);
  if (kSyncs.count(name) || (indexes.has_mask && !indexes.is_masked_fill)) report(SYNC, name.c_str(), 0);
  {
    at::AutoDispatchBelowADInplaceOrView below;
    c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    op.redispatchBoxed(c10::DispatchKeySet(DispatchKey::CPU), stack);
  }
  for (const auto& [original, twin] : arguments.twins) write_back(original, twin);
  for (auto place = stack->end() - schema.returns().size(); place != stack->end(); ++place)
    *place = restore(*place, arguments);
}

// ---------------------------------------------------------------- memory, copies and reads

Tensor empty(
    c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
    std::optional<Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return to_device(at::empty(C10_AS_INTARRAYREF_SLOW(size), dtype, layout, Device(DeviceType::CPU), false, format));
}

Tensor empty_strided(
    c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>, std::optional<Device>, std::optional<bool>) {
  const auto type = c10::scalarTypeToTypeMeta(dtype.value_or(at::get_default_dtype_as_scalartype()));
  const auto sizes = C10_AS_INTARRAYREF_SLOW(size), strides = C10_AS_INTARRAYREF_SLOW(stride);
  const auto bytes = at::detail::computeStorageNbytes(sizes, strides, type.itemsize());
  c10::Storage cpu(c10::Storage::use_byte_size_t(), bytes, c10::GetCPUAllocator(), true);
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(to_device(cpu), c10::DispatchKeySet(DispatchKey::CUDA), type);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return tensor;
}

Tensor& copy_(Tensor& self, const Tensor& source, bool non_blocking) {
  if (self.is_cuda() && source.is_cuda()) {
    report(LAUNCH, "copy_", self.nbytes());
  } else if (self.is_cuda()) {
    const bool is_async = non_blocking && source.is_pinned();
    report(is_async ? PINNED_TO_DEVICE : PAGEABLE_TO_DEVICE, "copy_", source.nbytes());
  } else {
    const bool is_async = non_blocking && self.is_pinned();
    report(TO_HOST, "copy_", source.nbytes());
    if (!is_async) report(SYNC, "copy_", source.nbytes());
  }
  const Tensor target = self.is_cuda() ? to_cpu(self) : self;
  const Tensor origin = source.is_cuda() ? to_cpu(source) : source;
  at::AutoDispatchBelowADInplaceOrView below;
  target.copy_(origin);
  return self;
}

at::Scalar read_scalar(const Tensor& self) {
  report(SYNC, "item", self.nbytes());
  return to_cpu(self).item();
}

Tensor& set_storage(
    Tensor& self, at::Storage source, c10::SymInt offset, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(source);
  const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  if (stride.empty() && !sizes.empty()) {
    impl->set_storage_offset(offset.expect_int());
    impl->set_sizes_contiguous(sizes);
  } else {
    impl->set_sizes_and_strides(sizes, C10_AS_INTARRAYREF_SLOW(stride), offset.expect_int());
  }
  return self;
}

Tensor& set_whole_storage(Tensor& self, at::Storage source) {
  const int64_t length = source.nbytes() / self.dtype().itemsize();
  return set_storage(self, std::move(source), 0, {c10::SymInt(length)}, {c10::SymInt(1)});
}

Tensor& set_tensor(Tensor& self, const Tensor& source) {
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(source.storage());
  self.unsafeGetTensorImpl()->set_sizes_and_strides(source.sizes(), source.strides(), source.storage_offset());
  return self;
}

void record_stream(Tensor&, c10::Stream) {}

TORCH_LIBRARY_IMPL(_, CUDA, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>()); }

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("copy_", &copy_);
  m.impl("_local_scalar_dense", &read_scalar);
  m.impl("set_.source_Storage", &set_whole_storage);
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("set_.source_Tensor", &set_tensor);
  m.impl("record_stream", &record_stream);
  m.impl("view", &at::native::view);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  // Operations that torch composes of others on any device, but for which a GPU, as a CPU, has kernels of its own; and
  // those on lists of tensors, for which only a GPU has.
  const std::set<std::string> done = {"copy_", "set_.source_Tensor", "record_stream", "empty.memory_format", "empty_strided"};
  for (const auto& full : c10::Dispatcher::singleton().getAllOpNames()) {
    if (full.name.rfind("aten::", 0) != 0) continue;
    const auto op = c10::Dispatcher::singleton().findOp(full);
    const bool is_on_lists = full.name.rfind("aten::_foreach_", 0) == 0;
    const bool has_both = op->hasKernelForDispatchKey(DispatchKey::CPU) &&
        (op->hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
         op->hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional));
    const std::string name = full.name.substr(6) + (full.overload_name.empty() ? "" : "." + full.overload_name);
    if ((is_on_lists || has_both) && !done.count(name))
      m.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
  }
}

// The kernel of F.scaled_dot_product_attention, as torch >= 2.11 chooses it on an H100 (cuda/sdp_utils.cpp): cuDNN is
// preferred there, then the order of the context counts; a kernel must be enabled and take the arguments.
int64_t choose_attention(
    const Tensor& query, const Tensor& key, const Tensor&, const std::optional<Tensor>& mask, double, bool,
    std::optional<double>, bool) {
  const auto& context = at::globalContext();
  const bool is_half = query.scalar_type() == at::kBFloat16 || query.scalar_type() == at::kHalf;
  std::vector<at::SDPBackend> order = {at::SDPBackend::cudnn_attention};
  for (const auto backend : at::globalContext().sDPPriorityOrder()) order.push_back(backend);
  for (const auto backend : order) {
    const bool is_chosen =
        backend == at::SDPBackend::cudnn_attention
            ? context.userEnabledCuDNNSDP() && is_half && key.size(2) > 1 && query.size(3) % 8 == 0 && query.size(3) <= 128
        : backend == at::SDPBackend::flash_attention ? context.userEnabledFlashSDP() && is_half && !mask
        : backend == at::SDPBackend::efficient_attention ? context.userEnabledMemEfficientSDP() : false;
    if (is_chosen) return static_cast<int64_t>(backend);
  }
  return static_cast<int64_t>(at::SDPBackend::math);
}

[[maybe_unused]] const bool has_chosen = [] {
  at::native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(&choose_attention);
  return true;
}();

}  // namespace standin
