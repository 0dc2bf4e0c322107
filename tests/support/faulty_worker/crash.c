/* A kernel that writes to unmapped memory. */
void loopfleet_kernel(float* const* buffers) {
  (void)buffers;
  *(volatile int*)16 = 1;
}
