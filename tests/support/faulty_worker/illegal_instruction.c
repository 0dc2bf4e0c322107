/* A kernel that ends in an illegal instruction. */
void loopfleet_kernel(float* const* buffers) {
  (void)buffers;
  __builtin_trap();
}
