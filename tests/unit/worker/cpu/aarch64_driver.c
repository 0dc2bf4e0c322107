/* Runs kernels from shared libraries on another processor, for aarch64_test.cc. The argument is a
 * file with one line per kernel: LIBRARY INPUT_FILE OUTPUT_FILE COUNT (ROLE ELEMENTS)*, with roles
 * 0 input, 1 output, 2 scratch. Exits with 1 and a line that says why if a kernel cannot be run or
 * writes outside its outputs and scratch. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMostBuffers = 64, kGuard = 64 };

typedef void (*Kernel)(float* const* buffers);

struct Buffer {
  int role;
  size_t count;
  float* memory; /* guard, elements, guard */
  float* copy;   /* copy of an input; NULL for other roles */
};

static void Fail(const char* what, const char* detail) {
  printf("%s: %s\n", what, detail == NULL ? "" : detail);
  exit(1);
}

static void Fill(struct Buffer* buffer, FILE* inputs) {
  const size_t bytes = ((buffer->count + 2 * kGuard) * sizeof(float) + 63) / 64 * 64;
  buffer->memory = aligned_alloc(64, bytes);
  for (size_t i = 0; i < buffer->count + 2 * kGuard; ++i) buffer->memory[i] = -12345.0F;
  float* elements = buffer->memory + kGuard;
  for (size_t i = 0; i < buffer->count; ++i) elements[i] = NAN;
  buffer->copy = NULL;
  if (buffer->role != 0) return;
  if (fread(elements, sizeof(float), buffer->count, inputs) != buffer->count) Fail("inputs", "");
  buffer->copy = malloc(buffer->count * sizeof(float) + 1);
  memcpy(buffer->copy, elements, buffer->count * sizeof(float));
}

static void Check(const struct Buffer* buffer, const char* library) {
  for (size_t i = 0; i < kGuard; ++i) {
    if (buffer->memory[i] != -12345.0F || buffer->memory[kGuard + buffer->count + i] != -12345.0F) {
      Fail("wrote beside a buffer", library);
    }
  }
  const float* elements = buffer->memory + kGuard;
  if (buffer->copy != NULL && memcmp(elements, buffer->copy, buffer->count * sizeof(float)) != 0) {
    Fail("wrote an input", library);
  }
}

static void Run(const char* library, FILE* inputs, FILE* outputs, struct Buffer* buffers, int count) {
  void* handle = dlopen(library, RTLD_NOW);
  if (handle == NULL) Fail("dlopen", dlerror());
  Kernel kernel;
  void* symbol = dlsym(handle, "loopfleet_kernel");
  if (symbol == NULL) Fail("no kernel in", library);
  memcpy(&kernel, &symbol, sizeof kernel);
  float* pointers[kMostBuffers];
  for (int i = 0; i < count; ++i) {
    Fill(&buffers[i], inputs);
    pointers[i] = buffers[i].memory + kGuard;
  }
  kernel(pointers);
  for (int i = 0; i < count; ++i) {
    Check(&buffers[i], library);
    if (buffers[i].role == 1) fwrite(pointers[i], sizeof(float), buffers[i].count, outputs);
    free(buffers[i].memory);
    free(buffers[i].copy);
  }
  dlclose(handle);
}

int main(int argc, char** argv) {
  FILE* cases = argc == 2 ? fopen(argv[1], "r") : NULL;
  if (cases == NULL) Fail("usage", "driver CASES");
  char library[512];
  char input[512];
  char output[512];
  int count = 0;
  while (fscanf(cases, "%511s %511s %511s %d", library, input, output, &count) == 4) {
    struct Buffer buffers[kMostBuffers];
    if (count > kMostBuffers) Fail("too many buffers", library);
    for (int i = 0; i < count; ++i) {
      if (fscanf(cases, "%d %zu", &buffers[i].role, &buffers[i].count) != 2) Fail("cases", library);
    }
    FILE* inputs = fopen(input, "rb");
    FILE* outputs = fopen(output, "wb");
    if (inputs == NULL || outputs == NULL) Fail("files of", library);
    Run(library, inputs, outputs, buffers, count);
    fclose(inputs);
    fclose(outputs);
  }
  return 0;
}
