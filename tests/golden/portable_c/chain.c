/* A loop schedule as portable C, written by loopfleet.
 *   cc -std=c11 -O3 -march=native -c FILE   (link with -lm)
 *
 * Program, in float32:
 *   m = 6 n = 10
 *   %0[m, n] = read()
 *   %1[m, n] = read()
 *   %2[m, n] = multiply(%0, %1)
 *   %3[m, n] = exp(%2)
 *   %4[m, n] = add(%3, %0)
 *   %5[m, n] = write(%4)
 *
 * Loops ("4 r 1": 4 full iterations, then a tail of 1 element):
 * for m in 6 : L0
 *  for n in 10 : L1
 *   %2[m, n] <- multiply(%0, %1)
 *   %3[m, n] <- exp(%2)
 *   %4[m, n] <- add(%3, %0)
 *   %5[m, n] <- write(%4)
 *
 * buffers: dense and row-major, none overlapping another. Inputs are only read, every
 * element of the outputs is written, scratch may hold anything before and after.
 *   [0] input  in0    %0[m, n]: 6 x 10 = 60 elements, 240 bytes
 *   [1] input  in1    %1[m, n]: 6 x 10 = 60 elements, 240 bytes
 *   [2] output out0   %5[m, n]: 6 x 10 = 60 elements, 240 bytes
 * No scratch.
 */
#include <math.h>
#include <stdint.h>

void loopfleet_kernel(float* const* buffers);

void loopfleet_kernel(float* const* buffers) {
  const float* restrict in0 = buffers[0];
  const float* restrict in1 = buffers[1];
  float* restrict out0 = buffers[2];
  for (int64_t m = 0; m < 6; ++m) { /* L0: m in 6 */
    for (int64_t n = 0; n < 10; ++n) { /* L1: n in 10 */
      const float v2 = in0[m * 10 + n] * in1[m * 10 + n]; /* multiply */
      const float v3 = expf(v2); /* exp */
      const float v4 = v3 + in0[m * 10 + n]; /* add */
      out0[m * 10 + n] = v4; /* %5 */
    }
  }
}
