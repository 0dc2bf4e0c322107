/* A kernel that never returns. */
void loopfleet_kernel(float* const* buffers) {
  volatile int forever = 1;
  (void)buffers;
  while (forever) {
  }
}
