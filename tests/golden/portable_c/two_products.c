/* A loop schedule as portable C, written by loopfleet.
 *   cc -std=c11 -O3 -march=native -c FILE   (link with -lm)
 *
 * Program, in float32:
 *   m = 8 k = 4 n = 6 p = 10
 *   %0[m, k] = read()
 *   %1[k, n] = read()
 *   %2[n, p] = read()
 *   %3[m, k, n] = multiply(%0, %1)
 *   %4[m, n] = add(%3)
 *   %5[m, n, p] = multiply(%4, %2)
 *   %6[m, p] = add(%5)
 *   %7[m, p] = write(%6)
 *
 * Loops ("4 r 1": 4 full iterations, then a tail of 1 element):
 * for m in 8 : L0
 *  for k in 4 : L1
 *   for n in 6 : L2
 *    %3[m, k, n] <- multiply(%0, %1)
 *    %4[m, n] <- add(%3)
 *  for n in 6 : L5
 *   for p in 10 : L6
 *    %5[m, n, p] <- multiply(%4, %2)
 *    %6[m, p] <- add(%5)
 *  for p in 10 : L9
 *   %7[m, p] <- write(%6)
 *
 * buffers: dense and row-major, none overlapping another. Inputs are only read, every
 * element of the outputs is written, scratch may hold anything before and after.
 *   [0] input  in0    %0[m, k]: 8 x 4 = 32 elements, 128 bytes
 *   [1] input  in1    %1[k, n]: 4 x 6 = 24 elements, 96 bytes
 *   [2] input  in2    %2[n, p]: 6 x 10 = 60 elements, 240 bytes
 *   [3] output out0   %7[m, p]: 8 x 10 = 80 elements, 320 bytes
 *   [4] scratch: 32 elements, 128 bytes, of which
 *       t4     at 16: %4[m, n], 1 x 6 = 6 elements
 *       t6     at 0: %6[m, p], 1 x 10 = 10 elements
 */
#include <stdint.h>

void loopfleet_kernel(float* const* buffers);

void loopfleet_kernel(float* const* buffers) {
  const float* restrict in0 = buffers[0];
  const float* restrict in1 = buffers[1];
  const float* restrict in2 = buffers[2];
  float* restrict out0 = buffers[3];
  float* restrict t4 = buffers[4] + 16;
  float* restrict t6 = buffers[4];
  for (int64_t m = 0; m < 8; ++m) { /* L0: m in 8 */
    for (int64_t n_init = 0; n_init < 6; ++n_init) {
      t4[n_init] = 0.0f; /* %4 */
    }
    for (int64_t k = 0; k < 4; ++k) { /* L1: k in 4 */
      for (int64_t n = 0; n < 6; ++n) { /* L2: n in 6 */
        const float v3 = in0[m * 4 + k] * in1[k * 6 + n]; /* multiply */
        t4[n] += v3; /* %4 */
      }
    }
    for (int64_t p_init = 0; p_init < 10; ++p_init) {
      t6[p_init] = 0.0f; /* %6 */
    }
    for (int64_t n = 0; n < 6; ++n) { /* L5: n in 6 */
      for (int64_t p = 0; p < 10; ++p) { /* L6: p in 10 */
        const float v5 = t4[n] * in2[n * 10 + p]; /* multiply */
        t6[p] += v5; /* %6 */
      }
    }
    for (int64_t p = 0; p < 10; ++p) { /* L9: p in 10 */
      out0[m * 10 + p] = t6[p]; /* %7 */
    }
  }
}
