/* A loop schedule as portable C, written by loopfleet.
 *   cc -std=c11 -O3 -march=native -c FILE   (link with -lm)
 *
 * Program, in float32:
 *   m = 12 k = 8 n = 20
 *   %0[m, k] = read()
 *   %1[k, n] = read()
 *   %2[n] = read()
 *   %3[m, n] = read()
 *   %4[m, k, n] = multiply(%0, %1)
 *   %5[m, n] = add(%4)
 *   %6[m, n] = add(%5, %2)
 *   %7[m, n] = max(%6, %3)
 *   %8[m, n] = write(%7)
 *
 * Loops ("4 r 1": 4 full iterations, then a tail of 1 element):
 * for m in 3 : L0
 *  for m' in 4 : L1
 *   for k in 8 : L2
 *    for n in 20 : L3
 *     %4[m, k, n] <- multiply(%0, %1)
 *     %5[m, n] <- add(%4)
 *   for n in 20 : L6
 *    %6[m, n] <- add(%5, %2)
 *    %7[m, n] <- max(%6, %3)
 *    %8[m, n] <- write(%7)
 *
 * buffers: dense and row-major, none overlapping another. Inputs are only read, every
 * element of the outputs is written, scratch may hold anything before and after.
 *   [0] input  in0    %0[m, k]: 12 x 8 = 96 elements, 384 bytes
 *   [1] input  in1    %1[k, n]: 8 x 20 = 160 elements, 640 bytes
 *   [2] input  in2    %2[n]: 20 elements, 80 bytes
 *   [3] input  in3    %3[m, n]: 12 x 20 = 240 elements, 960 bytes
 *   [4] output out0   %8[m, n]: 12 x 20 = 240 elements, 960 bytes
 *   [5] scratch: 32 elements, 128 bytes, of which
 *       t5     at 0: %5[m, n], 1 x 20 = 20 elements
 */
#include <stdint.h>

static float larger(float a, float b) { return a > b ? a : b; }

void loopfleet_kernel(float* const* buffers);

void loopfleet_kernel(float* const* buffers) {
  const float* restrict in0 = buffers[0];
  const float* restrict in1 = buffers[1];
  const float* restrict in2 = buffers[2];
  const float* restrict in3 = buffers[3];
  float* restrict out0 = buffers[4];
  float* restrict t5 = buffers[5];
  for (int64_t m = 0; m < 12; m += 4) { /* L0: m in 3 */
    for (int64_t m_1 = 0; m_1 < 4; ++m_1) { /* L1: m' in 4 */
      for (int64_t n_init = 0; n_init < 20; ++n_init) {
        t5[n_init] = 0.0f; /* %5 */
      }
      for (int64_t k = 0; k < 8; ++k) { /* L2: k in 8 */
        for (int64_t n = 0; n < 20; ++n) { /* L3: n in 20 */
          const float v4 = in0[(m + m_1) * 8 + k] * in1[k * 20 + n]; /* multiply */
          t5[n] += v4; /* %5 */
        }
      }
      for (int64_t n = 0; n < 20; ++n) { /* L6: n in 20 */
        const float v6 = t5[n] + in2[n]; /* add */
        const float v7 = larger(v6, in3[(m + m_1) * 20 + n]); /* max */
        out0[(m + m_1) * 20 + n] = v7; /* %8 */
      }
    }
  }
}
