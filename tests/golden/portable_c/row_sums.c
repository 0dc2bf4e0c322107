/* A loop schedule as portable C, written by loopfleet.
 *   cc -std=c11 -O3 -march=native -c FILE   (link with -lm)
 *
 * Program, in float32:
 *   m = 10 k = 7
 *   %0[m, k] = read()
 *   %1[m] = add(%0)
 *   %2[m] = write(%1)
 *
 * Loops ("4 r 1": 4 full iterations, then a tail of 1 element):
 * for k in 7 : L0
 *  for m in 10 : L1
 *   %1[m] <- add(%0)
 * for m in 10 : L3
 *  %2[m] <- write(%1)
 *
 * buffers: dense and row-major, none overlapping another. Inputs are only read, every
 * element of the outputs is written, scratch may hold anything before and after.
 *   [0] input  in0    %0[m, k]: 10 x 7 = 70 elements, 280 bytes
 *   [1] output out0   %2[m]: 10 elements, 40 bytes
 *   [2] scratch: 16 elements, 64 bytes, of which
 *       t1     at 0: %1[m], 10 elements
 */
#include <stdint.h>

void loopfleet_kernel(float* const* buffers);

void loopfleet_kernel(float* const* buffers) {
  const float* restrict in0 = buffers[0];
  float* restrict out0 = buffers[1];
  float* restrict t1 = buffers[2];
  for (int64_t m_init = 0; m_init < 10; ++m_init) {
    t1[m_init] = 0.0f; /* %1 */
  }
  for (int64_t k = 0; k < 7; ++k) { /* L0: k in 7 */
    for (int64_t m = 0; m < 10; ++m) { /* L1: m in 10 */
      t1[m] += in0[m * 7 + k]; /* %1 */
    }
  }
  for (int64_t m = 0; m < 10; ++m) { /* L3: m in 10 */
    out0[m] = t1[m]; /* %2 */
  }
}
