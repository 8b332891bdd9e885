// The device of the stand-in as torch sees it: its memory, its stream, pinned memory, and who listens to what it does.
// For cuda.cpp, which has the operations.

#pragma once

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/Storage.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>

namespace standin {

using c10::Device;
using c10::DeviceType;

inline const Device kDevice(DeviceType::CUDA, 0);

// ---------------------------------------------------------------- the listener and the memory of the device

enum Kind { LAUNCH, SYNC, PAGEABLE_TO_DEVICE, PINNED_TO_DEVICE, TO_HOST };

using Listener = void (*)(int kind, const char* name, int64_t bytes);
inline Listener listener = nullptr;
inline thread_local int paused = 0;
inline std::atomic<int64_t> allocated{0}, peak{0}, capacity{int64_t(80) << 30};

inline std::atomic<bool> may_sync{true};

inline void report(Kind kind, const char* name, int64_t bytes) {
  if (listener && !paused) listener(kind, name, bytes);
  // The words of torch (c10/cuda/CUDAFunctions.cpp); a copy from pageable memory ends in a sync, too.
  TORCH_CHECK(may_sync || paused || (kind != SYNC && kind != PAGEABLE_TO_DEVICE), "called a synchronizing CUDA operation");
}

// The CPU storage behind a storage of the device.
struct Twin {
  c10::Storage cpu;
  int64_t bytes;

  explicit Twin(c10::Storage storage) : cpu(std::move(storage)), bytes(cpu.nbytes()) {
    const int64_t now = allocated += bytes;
    if (now > capacity) {
      allocated -= bytes;
      TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate ", bytes, " bytes (stand-in)");
    }
    int64_t seen = peak;
    while (now > seen && !peak.compare_exchange_weak(seen, now)) {}
  }
  ~Twin() { allocated -= bytes; }
  static void destroy(void* twin) { delete static_cast<Twin*>(twin); }
};

inline at::DataPtr data_of(const c10::Storage& cpu) {
  auto* twin = new Twin(cpu);
  return {cpu.mutable_data(), twin, &Twin::destroy, kDevice};
}

struct DeviceAllocator final : c10::Allocator {
  at::DataPtr allocate(size_t bytes) override {
    return data_of(c10::Storage(c10::Storage::use_byte_size_t(), bytes, c10::GetCPUAllocator(), true));
  }
  void copy_data(void* target, const void* source, std::size_t count) const override {
    default_copy_data(target, source, count);
  }
};

inline DeviceAllocator device_allocator;

inline c10::Storage to_device(const c10::Storage& cpu) {
  return c10::Storage(c10::Storage::use_byte_size_t(), cpu.nbytes(), data_of(cpu), &device_allocator, true);
}

inline c10::Storage to_cpu(const c10::Storage& storage) {
  auto* twin = storage.data_ptr().cast_context<Twin>(&Twin::destroy);
  if (twin) return twin->cpu;
  TORCH_CHECK(storage.nbytes() == 0, "stand-in: a storage of the device that it has not made");
  return c10::Storage(c10::Storage::use_byte_size_t(), 0, c10::GetCPUAllocator(), true);
}

// ---------------------------------------------------------------- pinned memory

// Memory of the CPU that copies to the device need not stage.
struct PinnedAllocator final : c10::Allocator {
  at::DataPtr allocate(size_t bytes) override {
    void* data = std::aligned_alloc(64, (std::max<size_t>(bytes, 1) + 63) / 64 * 64);
    const std::lock_guard<std::mutex> lock(mutex());
    blocks()[data] = std::max<size_t>(bytes, 1);
    return {data, data, &release, Device(DeviceType::CPU)};
  }
  at::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* target, const void* source, std::size_t count) const override {
    default_copy_data(target, source, count);
  }
  static bool has(const void* data) {
    const std::lock_guard<std::mutex> lock(mutex());
    auto next = blocks().upper_bound(const_cast<void*>(data));
    if (next == blocks().begin()) return false;
    --next;
    return static_cast<const char*>(data) < static_cast<const char*>(next->first) + next->second;
  }
  static void release(void* data) {
    {
      const std::lock_guard<std::mutex> lock(mutex());
      blocks().erase(data);
    }
    std::free(data);
  }
  static std::map<void*, size_t>& blocks() {
    static auto* blocks = new std::map<void*, size_t>();
    return *blocks;
  }
  static std::mutex& mutex() {
    static auto* mutex = new std::mutex();
    return *mutex;
  }
};

inline PinnedAllocator pinned;

// ---------------------------------------------------------------- guard and hooks

// Streams and events are in order by nature: everything is done when it is called.
struct Guard final : c10::impl::NoOpDeviceGuardImpl<DeviceType::CUDA> {
  Device getDevice() const override { return kDevice; }
  c10::Stream getStream(Device) const noexcept override { return c10::Stream(c10::Stream::DEFAULT, kDevice); }
  void record(void** event, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {
    *event = const_cast<Device*>(&kDevice);
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeEvent(void*) const override { report(SYNC, "event", 0); }
  void synchronizeStream(const c10::Stream&) const override { report(SYNC, "stream", 0); }
  void synchronizeDevice(const c10::DeviceIndex) const override { report(SYNC, "synchronize", 0); }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
};

}  // namespace standin

C10_REGISTER_GUARD_IMPL(CUDA, standin::Guard);

namespace at {
struct StandInHooks final : CUDAHooksInterface {
  explicit StandInHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  int getNumGPUs() const override { return 1; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  DeviceIndex current_device() const override { return 0; }
  DeviceIndex exchangeDevice(DeviceIndex) const override { return 0; }
  DeviceIndex maybeExchangeDevice(DeviceIndex) const override { return 0; }
  void setCurrentDevice(DeviceIndex) const override {}
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  bool isPinnedPtr(const void* data) const override { return standin::PinnedAllocator::has(data); }
  Allocator* getPinnedMemoryAllocator() const override { return &standin::pinned; }
  void deviceSynchronize(DeviceIndex) const override { standin::report(standin::SYNC, "synchronize", 0); }
};
C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, StandInHooks)
}  // namespace at

extern "C" {
void standin_listen(standin::Listener callback) { standin::listener = callback; }
void standin_pause(int change) { standin::paused += change; }
void standin_synchronize() {
  if (standin::listener) standin::listener(standin::SYNC, "synchronize", 0);  // allowed even where syncs are errors
}
void standin_set_may_sync(int may_sync) { standin::may_sync = may_sync; }
int64_t standin_allocated() { return standin::allocated; }
int64_t standin_peak() { return standin::peak; }
void standin_reset_peak() { standin::peak = standin::allocated.load(); }
void standin_set_capacity(int64_t bytes) { standin::capacity = bytes; }
int64_t standin_capacity() { return standin::capacity; }
}
