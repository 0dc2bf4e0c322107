/* A loop schedule as portable C, written by loopfleet.
 *   cc -std=c11 -O3 -march=native -c FILE   (link with -lm)
 *
 * Program, in float32:
 *   m = 6 n = 9
 *   %0[m, n] = read()
 *   %1[m] = max(%0)
 *   %2[m, n] = subtract(%0, %1)
 *   %3[m, n] = write(%2)
 *
 * Loops ("4 r 1": 4 full iterations, then a tail of 1 element):
 * for m in 6 : L0
 *  for n in 9 : L1
 *   %1[m] <- max(%0)
 *  for n in 9 : L3
 *   %2[m, n] <- subtract(%0, %1)
 *   %3[m, n] <- write(%2)
 *
 * buffers: dense and row-major, none overlapping another. Inputs are only read, every
 * element of the outputs is written, scratch may hold anything before and after.
 *   [0] input  in0    %0[m, n]: 6 x 9 = 54 elements, 216 bytes
 *   [1] output out0   %3[m, n]: 6 x 9 = 54 elements, 216 bytes
 *   [2] scratch: 16 elements, 64 bytes, of which
 *       t1     at 0: %1[m], 1 element
 */
#include <math.h>
#include <stdint.h>

static float larger(float a, float b) { return a > b ? a : b; }

void loopfleet_kernel(float* const* buffers);

void loopfleet_kernel(float* const* buffers) {
  const float* restrict in0 = buffers[0];
  float* restrict out0 = buffers[1];
  float* restrict t1 = buffers[2];
  for (int64_t m = 0; m < 6; ++m) { /* L0: m in 6 */
    t1[0] = -INFINITY; /* %1 */
    for (int64_t n = 0; n < 9; ++n) { /* L1: n in 9 */
      t1[0] = larger(t1[0], in0[m * 9 + n]); /* %1 */
    }
    for (int64_t n = 0; n < 9; ++n) { /* L3: n in 9 */
      const float v2 = in0[m * 9 + n] - t1[0]; /* subtract */
      out0[m * 9 + n] = v2; /* %3 */
    }
  }
}
