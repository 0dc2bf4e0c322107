// The library that OpenNoDriver opens: a libcuda.so.1 that reports no device. nvJitLink asks for a
// driver at each link (for its cache) and works without one. Links no C library.

// NOLINTBEGIN: the names are NVIDIA's
namespace {

constexpr int kNotInitialized = 3;
constexpr int kNoDevice = 100;

}  // namespace

extern "C" {

int cuInit(unsigned) { return kNoDevice; }
int cuDriverGetVersion(int* version) {
  *version = 0;
  return kNotInitialized;
}
int cuDeviceGetCount(int* count) {
  *count = 0;
  return kNotInitialized;
}
int cuDeviceGet(int*, int) { return kNotInitialized; }
int cuDeviceGetAttribute(int*, int, int) { return kNotInitialized; }
int cuCtxGetCurrent(void** context) {
  *context = nullptr;
  return kNotInitialized;
}
int cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return kNotInitialized;
}
int cuGetProcAddress(const char*, void** function, int, unsigned long long) {
  *function = nullptr;
  return kNotInitialized;
}
int cuGetProcAddress_v2(const char*, void** function, int, unsigned long long, int*) {
  *function = nullptr;
  return kNotInitialized;
}
int cuGetErrorName(int, const char** name) {
  *name = "CUDA_ERROR_NO_DEVICE";
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "no CUDA-capable device is detected";
  return 0;
}

}  // extern "C"
// NOLINTEND
