/* A kernel that leaves out all elements but one, and gets that one wrong as well. */
void loopfleet_kernel(float* const* buffers) { buffers[2][0] = 0.5f; }
