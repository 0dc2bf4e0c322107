/* A kernel that writes only one element, and that one wrong. */
void loopfleet_kernel(float* const* buffers) { buffers[2][0] = 0.5f; }
