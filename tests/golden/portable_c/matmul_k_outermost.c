/* A loop schedule as portable C, written by loopfleet.
 *   cc -std=c11 -O3 -march=native -c FILE   (link with -lm)
 *
 * Program, in float32:
 *   m = 33 k = 16 n = 48
 *   %0[m, k] = read()
 *   %1[k, n] = read()
 *   %2[m, k, n] = multiply(%0, %1)
 *   %3[m, n] = add(%2)
 *   %4[m, n] = write(%3)
 *
 * Loops ("4 r 1": 4 full iterations, then a tail of 1 element):
 * for k in 16 : L0
 *  for m in 33 : L1
 *   for n in 48 : L2
 *    %2[m, k, n] <- multiply(%0, %1)
 *    %3[m, n] <- add(%2)
 * for m in 33 : L5
 *  for n in 48 : L6
 *   %4[m, n] <- write(%3)
 *
 * buffers: dense and row-major, none overlapping another. Inputs are only read, every
 * element of the outputs is written, scratch may hold anything before and after.
 *   [0] input  in0    %0[m, k]: 33 x 16 = 528 elements, 2112 bytes
 *   [1] input  in1    %1[k, n]: 16 x 48 = 768 elements, 3072 bytes
 *   [2] output out0   %4[m, n]: 33 x 48 = 1584 elements, 6336 bytes
 *   [3] scratch: 1584 elements, 6336 bytes, of which
 *       t3     at 0: %3[m, n], 33 x 48 = 1584 elements
 */
#include <stdint.h>

void loopfleet_kernel(float* const* buffers);

void loopfleet_kernel(float* const* buffers) {
  const float* restrict in0 = buffers[0];
  const float* restrict in1 = buffers[1];
  float* restrict out0 = buffers[2];
  float* restrict t3 = buffers[3];
  for (int64_t m_init = 0; m_init < 33; ++m_init) {
    for (int64_t n_init = 0; n_init < 48; ++n_init) {
      t3[m_init * 48 + n_init] = 0.0f; /* %3 */
    }
  }
  for (int64_t k = 0; k < 16; ++k) { /* L0: k in 16 */
    for (int64_t m = 0; m < 33; ++m) { /* L1: m in 33 */
      for (int64_t n = 0; n < 48; ++n) { /* L2: n in 48 */
        const float v2 = in0[m * 16 + k] * in1[k * 48 + n]; /* multiply */
        t3[m * 48 + n] += v2; /* %3 */
      }
    }
  }
  for (int64_t m = 0; m < 33; ++m) { /* L5: m in 33 */
    for (int64_t n = 0; n < 48; ++n) { /* L6: n in 48 */
      out0[m * 48 + n] = t3[m * 48 + n]; /* %4 */
    }
  }
}
