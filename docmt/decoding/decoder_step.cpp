// The decoder layers of a step of beam search in one call: the operations of `IncrementalDecoder.step` in their order, so
// that states are equal bit by bit, without the time that Python takes between them. `decoder_step.py` builds and calls it.
//
// Shape letters: B documents, M beam, R = B × M rows, L layers with one pattern, D width, H heads, K head width, P parts
// of an attention, O outputs of its projection, C capacity, N nodes, S source keys.

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/quantized/PackedParams.h>
#include <torch/custom_class.h>
#include <torch/library.h>

using at::Tensor;
using Int8Weight = c10::intrusive_ptr<LinearPackedParamsBase>;
using OptionalTensor = std::optional<Tensor>;
template <class Function>
auto find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}

// `FloatMatmul` with a packed weight, or `Int8Matmul` (matmuls.py).
struct Matmul : torch::CustomClassHolder {
  OptionalTensor weight, bias;
  std::optional<Int8Weight> packed;
  bool has_7_bits;
  Matmul(OptionalTensor weight, OptionalTensor bias, std::optional<Int8Weight> packed, bool has_7_bits)
      : weight(weight), bias(bias), packed(packed), has_7_bits(has_7_bits) {}

  Tensor operator()(const Tensor& rows_RI) const {
    static auto int8 = find_operator<Tensor(Tensor, const Int8Weight&, bool)>("quantized::linear_dynamic");
    static auto pointwise = find_operator<Tensor(
        const Tensor&, const Tensor&, const OptionalTensor&, std::string_view,
        c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>)>("mkldnn::_linear_pointwise");
    if (packed) return int8.call(rows_RI, *packed, has_7_bits);
    return pointwise.call(rows_RI, *weight, bias, "none", c10::List<std::optional<at::Scalar>>(), "");
  }
};
using Product = c10::intrusive_ptr<Matmul>;

// A feed-forward module or an attention, with the residual and the norm around it (layers.py).
struct Sublayer : torch::CustomClassHolder {
  Tensor norm_weight, norm_bias;
  double epsilon;
  bool is_pre;  // norm before the module instead of after the residual
  std::vector<Product> in, out;
  std::string activation;  // of a feed-forward module; empty for an attention
  std::vector<Product> gate;  // one or none
  bool shares_queries = false;
  int64_t heads = 0, outputs = 0;                 // outputs: 3 in self-attention, 1 in cross-attention
  std::vector<int64_t> caches = {}, numbers = {};  // of each part: its cache, and the number of its layer there

  Sublayer(Tensor norm_weight, Tensor norm_bias, double epsilon, bool is_pre, std::vector<Product> in,
           std::vector<Product> out, std::string activation)
      : norm_weight(norm_weight), norm_bias(norm_bias), epsilon(epsilon), is_pre(is_pre), in(in), out(out),
        activation(activation) {}

  void set_attention(std::vector<Product> gate, bool shares_queries, int64_t heads, int64_t outputs,
                     std::vector<int64_t> caches, std::vector<int64_t> numbers) {
    this->gate = gate, this->shares_queries = shares_queries, this->heads = heads, this->outputs = outputs;
    this->caches = caches, this->numbers = numbers;
  }

  Tensor norm(const Tensor& rows_RD) const {
    return at::layer_norm(rows_RD, {rows_RD.size(1)}, norm_weight, norm_bias, epsilon);
  }

  Tensor feed_forward(const Tensor& input_RD) const {
    Tensor inner = (*in[0])(input_RD);
    return (*out[0])(activation == "relu" ? inner.relu_() : activation == "gelu" ? at::gelu(inner) : at::silu(inner));
  }

  Tensor attention(Tensor query_RD, int64_t beam, const std::vector<Tensor>& keys_values,
                   const std::vector<int64_t>& lengths, const std::vector<OptionalTensor>& biases) const {
    int64_t n_parts = out.size(), n_rows = query_RD.size(0);
    std::vector<Tensor> found;
    Tensor projected_BMPOHK;
    for (int64_t part = 0; part < n_parts; part++) {
      if (!shares_queries || part == 0)
        projected_BMPOHK = (*in[part])(query_RD).view({n_rows / beam, beam, shares_queries ? n_parts : 1, outputs, heads, -1});
      Tensor projected_OBHMK = projected_BMPOHK.select(2, shares_queries ? part : 0).permute({2, 0, 3, 1, 4});
      int64_t cache = caches[part], n = lengths[cache];
      Tensor keys_values_2BHNK = keys_values[cache].select(0, numbers[part]).narrow(3, 0, n);
      // The newest nodes of the prefix tree.
      if (outputs == 3) keys_values_2BHNK.narrow(3, n - beam, beam).copy_(projected_OBHMK.narrow(0, 1, 2));
      Tensor output_BHMK = at::scaled_dot_product_attention(
          projected_OBHMK.select(0, 0), keys_values_2BHNK.select(0, 0), keys_values_2BHNK.select(0, 1), biases[cache],
          /*dropout_p=*/0.0, /*is_causal=*/false, /*scale=*/1.0);
      found.push_back((*out[part])(output_BHMK.transpose(1, 2).reshape({n_rows, -1})));
      if (!shares_queries) query_RD = found.back();  // the next part reads what this one gives
    }
    // The fusions of multi_head.py: parallel and mixed have a gate, serial has its last part, split the sum of all.
    if (!gate.empty()) return at::lerp(found[1], found[0], (*gate[0])(at::cat({found[0], found[1]}, -1)).sigmoid_());
    if (!shares_queries) return found.back();
    for (int64_t part = 1; part < n_parts; part++) found[0].add_(found[part]);
    return found[0];
  }
};

// All sublayers of a decoder, in their order.
struct DecoderStep : torch::CustomClassHolder {
  std::vector<c10::intrusive_ptr<Sublayer>> sublayers;
  explicit DecoderStep(std::vector<c10::intrusive_ptr<Sublayer>> sublayers) : sublayers(sublayers) {}

  // The trees are the caches of self-attention, the sources those of cross-attention.
  Tensor run(Tensor hidden_RD, int64_t beam, const std::vector<Tensor>& trees_L2BHCK, const std::vector<int64_t>& nodes,
             const std::vector<OptionalTensor>& tree_biases, const std::vector<Tensor>& sources_L2BHSK,
             const std::vector<OptionalTensor>& source_biases) {
    std::vector<int64_t> source_lengths;
    for (const auto& source : sources_L2BHSK) source_lengths.push_back(source.size(4));
    for (const auto& sublayer : sublayers) {
      Tensor input_RD = sublayer->is_pre ? sublayer->norm(hidden_RD) : hidden_RD;
      Tensor output_RD = !sublayer->activation.empty() ? sublayer->feed_forward(input_RD)
          : sublayer->outputs == 3 ? sublayer->attention(input_RD, beam, trees_L2BHCK, nodes, tree_biases)
                                   : sublayer->attention(input_RD, beam, sources_L2BHSK, source_lengths, source_biases);
      output_RD.add_(hidden_RD);
      hidden_RD = sublayer->is_pre ? output_RD : sublayer->norm(output_RD);
    }
    return hidden_RD;
  }
};

TORCH_LIBRARY(docmt, library) {
  using Sublayers = std::vector<c10::intrusive_ptr<Sublayer>>;
  library.class_<Matmul>("Matmul").def(torch::init<OptionalTensor, OptionalTensor, std::optional<Int8Weight>, bool>());
  library.class_<Sublayer>("Sublayer")
      .def(torch::init<Tensor, Tensor, double, bool, std::vector<Product>, std::vector<Product>, std::string>())
      .def("set_attention", &Sublayer::set_attention);
  library.class_<DecoderStep>("DecoderStep").def(torch::init<Sublayers>()).def("run", &DecoderStep::run);
}
