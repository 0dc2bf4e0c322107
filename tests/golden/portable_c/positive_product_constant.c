/* A loop schedule as portable C, written by loopfleet.
 *   cc -std=c11 -O3 -march=native -c FILE   (link with -lm)
 *
 * Program, in float32:
 *   m = 12 k = 8 n = 20
 *   %0[m, k] = read()
 *   %1[k, n] = read()
 *   %2[m, k, n] = multiply(%0, %1)
 *   %3[] = constant(0)
 *   %4[m, k, n] = max(%2, %3)
 *   %5[m, n] = add(%4)
 *   %6[m, n] = write(%5)
 *
 * Loops ("4 r 1": 4 full iterations, then a tail of 1 element):
 * for m in 12 : L0
 *  for k in 8 : L1
 *   for n in 20 : L2
 *    %2[m, k, n] <- multiply(%0, %1)
 *    %4[m, k, n] <- max(%2, 0)
 *    %5[m, n] <- add(%4)
 *  for n in 20 : L6
 *   %6[m, n] <- write(%5)
 *
 * buffers: dense and row-major, none overlapping another. Inputs are only read, every
 * element of the outputs is written, scratch may hold anything before and after.
 *   [0] input  in0    %0[m, k]: 12 x 8 = 96 elements, 384 bytes
 *   [1] input  in1    %1[k, n]: 8 x 20 = 160 elements, 640 bytes
 *   [2] output out0   %6[m, n]: 12 x 20 = 240 elements, 960 bytes
 *   [3] scratch: 32 elements, 128 bytes, of which
 *       t5     at 0: %5[m, n], 1 x 20 = 20 elements
 */
#include <stdint.h>

static float larger(float a, float b) { return a > b ? a : b; }

void loopfleet_kernel(float* const* buffers);

void loopfleet_kernel(float* const* buffers) {
  const float* restrict in0 = buffers[0];
  const float* restrict in1 = buffers[1];
  float* restrict out0 = buffers[2];
  float* restrict t5 = buffers[3];
  for (int64_t m = 0; m < 12; ++m) { /* L0: m in 12 */
    for (int64_t n_init = 0; n_init < 20; ++n_init) {
      t5[n_init] = 0.0f; /* %5 */
    }
    for (int64_t k = 0; k < 8; ++k) { /* L1: k in 8 */
      for (int64_t n = 0; n < 20; ++n) { /* L2: n in 20 */
        const float v2 = in0[m * 8 + k] * in1[k * 20 + n]; /* multiply */
        const float v4 = larger(v2, 0.0f); /* max */
        t5[n] += v4; /* %5 */
      }
    }
    for (int64_t n = 0; n < 20; ++n) { /* L6: n in 20 */
      out0[m * 20 + n] = t5[n]; /* %6 */
    }
  }
}
