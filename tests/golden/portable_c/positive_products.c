/* A loop schedule as portable C, written by loopfleet.
 *   cc -std=c11 -O3 -march=native -c FILE   (link with -lm)
 *
 * Program, in float32:
 *   m = 33 k = 16 n = 48
 *   %0[m, k] = read()
 *   %1[k, n] = read()
 *   %2[m, k, n] = multiply(%0, %1)
 *   %3[m, k, n] = constant(0)
 *   %4[m, k, n] = max(%2, %3)
 *   %5[m, n] = add(%4)
 *   %6[m, n] = write(%5)
 *
 * Loops ("4 r 1": 4 full iterations, then a tail of 1 element):
 * for m in 4 r 1 : L0
 *  for n in 1 r 16 : L1
 *   for k in 16 : L2
 *    for n' in 32 : L3
 *     for m' in 8 : L4
 *      %2[m, k, n] <- multiply(%0, %1)
 *      %4[m, k, n] <- max(%2, %3)
 *      %5[m, n] <- add(%4)
 *   for n' in 32 : L8
 *    for m' in 8 : L9
 *     %6[m, n] <- write(%5)
 *
 * buffers: dense and row-major, none overlapping another. Inputs are only read, every
 * element of the outputs is written, scratch may hold anything before and after.
 *   [0] input  in0    %0[m, k]: 33 x 16 = 528 elements, 2112 bytes
 *   [1] input  in1    %1[k, n]: 16 x 48 = 768 elements, 3072 bytes
 *   [2] output out0   %6[m, n]: 33 x 48 = 1584 elements, 6336 bytes
 *   [3] scratch: 256 elements, 1024 bytes, of which
 *       t5     at 0: %5[m, n], 8 x 32 = 256 elements
 */
#include <stdint.h>

static float larger(float a, float b) { return a > b ? a : b; }

void loopfleet_kernel(float* const* buffers);

void loopfleet_kernel(float* const* buffers) {
  const float* restrict in0 = buffers[0];
  const float* restrict in1 = buffers[1];
  float* restrict out0 = buffers[2];
  float* restrict t5 = buffers[3];
  for (int64_t m = 0; m < 33; m += 8) { /* L0: m in 4 r 1 */
    const int64_t m_left = 33 - m < 8 ? 33 - m : 8; /* 8, in the tail 1 */
    for (int64_t n = 0; n < 48; n += 32) { /* L1: n in 1 r 16 */
      const int64_t n_left = 48 - n < 32 ? 48 - n : 32; /* 32, in the tail 16 */
      for (int64_t m_init = 0; m_init < m_left; ++m_init) {
        for (int64_t n_init = 0; n_init < n_left; ++n_init) {
          t5[m_init * 32 + n_init] = 0.0f; /* %5 */
        }
      }
      for (int64_t k = 0; k < 16; ++k) { /* L2: k in 16 */
        for (int64_t n_1 = 0; n_1 < n_left; ++n_1) { /* L3: n' in 32 */
          for (int64_t m_1 = 0; m_1 < m_left; ++m_1) { /* L4: m' in 8 */
            const float v2 = in0[(m + m_1) * 16 + k] * in1[k * 48 + n + n_1]; /* multiply */
            const float v4 = larger(v2, 0.0f); /* max */
            t5[m_1 * 32 + n_1] += v4; /* %5 */
          }
        }
      }
      for (int64_t n_1 = 0; n_1 < n_left; ++n_1) { /* L8: n' in 32 */
        for (int64_t m_1 = 0; m_1 < m_left; ++m_1) { /* L9: m' in 8 */
          out0[(m + m_1) * 48 + n + n_1] = t5[m_1 * 32 + n_1]; /* %6 */
        }
      }
    }
  }
}
