/* A loop schedule as portable C, written by loopfleet.
 *   cc -std=c11 -O3 -march=native -c FILE   (link with -lm)
 *
 * Program, in float32:
 *   m = 32 k = 16 n = 48
 *   %0[m, k] = read()
 *   %1[k, n] = read()
 *   %2[m, k, n] = multiply(%0, %1)
 *   %3[m, n] = add(%2)
 *   %4[m, n] = write(%3)
 *
 * Loops ("4 r 1": 4 full iterations, then a tail of 1 element):
 * for m in 4 : L0
 *  for k in 16 : L1
 *   for n in 48 : L2
 *    for m' in 8 : L3
 *     %2[m, k, n] <- multiply(%0, %1)
 *     %3[m, n] <- add(%2)
 *  for m' in 2 : L6
 *   for m'' in 4 : L7
 *    for n in 48 : L8
 *     %4[m, n] <- write(%3)
 *
 * buffers: dense and row-major, none overlapping another. Inputs are only read, every
 * element of the outputs is written, scratch may hold anything before and after.
 *   [0] input  in0    %0[m, k]: 32 x 16 = 512 elements, 2048 bytes
 *   [1] input  in1    %1[k, n]: 16 x 48 = 768 elements, 3072 bytes
 *   [2] output out0   %4[m, n]: 32 x 48 = 1536 elements, 6144 bytes
 *   [3] scratch: 384 elements, 1536 bytes, of which
 *       t3     at 0: %3[m, n], 8 x 48 = 384 elements
 */
#include <stdint.h>

void loopfleet_kernel(float* const* buffers);

void loopfleet_kernel(float* const* buffers) {
  const float* restrict in0 = buffers[0];
  const float* restrict in1 = buffers[1];
  float* restrict out0 = buffers[2];
  float* restrict t3 = buffers[3];
  for (int64_t m = 0; m < 32; m += 8) { /* L0: m in 4 */
    for (int64_t m_init = 0; m_init < 8; ++m_init) {
      for (int64_t n_init = 0; n_init < 48; ++n_init) {
        t3[m_init * 48 + n_init] = 0.0f; /* %3 */
      }
    }
    for (int64_t k = 0; k < 16; ++k) { /* L1: k in 16 */
      for (int64_t n = 0; n < 48; ++n) { /* L2: n in 48 */
        for (int64_t m_1 = 0; m_1 < 8; ++m_1) { /* L3: m' in 8 */
          const float v2 = in0[(m + m_1) * 16 + k] * in1[k * 48 + n]; /* multiply */
          t3[m_1 * 48 + n] += v2; /* %3 */
        }
      }
    }
    for (int64_t m_1 = 0; m_1 < 8; m_1 += 4) { /* L6: m' in 2 */
      for (int64_t m_2 = 0; m_2 < 4; ++m_2) { /* L7: m'' in 4 */
        for (int64_t n = 0; n < 48; ++n) { /* L8: n in 48 */
          out0[(m + m_1 + m_2) * 48 + n] = t3[(m_1 + m_2) * 48 + n]; /* %4 */
        }
      }
    }
  }
}
