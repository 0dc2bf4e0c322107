/* A kernel that ends in an instruction that no processor has. */
void loopfleet_kernel(float* const* buffers) {
  (void)buffers;
  __builtin_trap();
}
