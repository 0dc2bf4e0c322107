/* A loop schedule as portable C, written by loopfleet.
 *   cc -std=c11 -O3 -march=native -c FILE   (link with -lm)
 *
 * Program, in float32:
 *   a = 4 d = 3 c = 7 e = 7 n = 21
 *   %0[a, n] = read()
 *   %1[c, n] = view(%0) where a = 1 c, n = 1 n, outside 0
 *   %2[d, n] = constant(5)
 *   %3[c, n] = view(%2) where d = 1 c + -4, n = 1 n, outside 0
 *   %4[c, n] = add(%1, %3)
 *   %5[e, n] = view(%4) where c = 1 e, n = 1 n
 *   %6[e, n] = view(%4) where c = 1 e + -1, n = 1 n, outside -7
 *   %7[e, n] = add(%5, %6)
 *   %8[n, e] = write(%7)
 *
 * Loops ("4 r 1": 4 full iterations, then a tail of 1 element):
 * for c in 7 : L0
 *  for n in 21 : L1
 *   %4[c, n] <- add(%1, %3)
 * for e in 7 : L3
 *  for n in 21 : L4
 *   %7[e, n] <- add(%5, %6)
 * for n in 21 : L6
 *  for e in 7 : L7
 *   %8[n, e] <- write(%7)
 *
 * buffers: dense and row-major, none overlapping another. Inputs are only read, every
 * element of the outputs is written, scratch may hold anything before and after.
 *   [0] input  in0    %0[a, n]: 4 x 21 = 84 elements, 336 bytes
 *   [1] output out0   %8[n, e]: 21 x 7 = 147 elements, 588 bytes
 *   [2] scratch: 320 elements, 1280 bytes, of which
 *       t4     at 0: %4[c, n], 7 x 21 = 147 elements
 *       t7     at 160: %7[e, n], 7 x 21 = 147 elements
 */
#include <stdint.h>

void loopfleet_kernel(float* const* buffers);

void loopfleet_kernel(float* const* buffers) {
  const float* restrict in0 = buffers[0];
  float* restrict out0 = buffers[1];
  float* restrict t4 = buffers[2];
  float* restrict t7 = buffers[2] + 160;
  for (int64_t c = 0; c < 7; ++c) { /* L0: c in 7 */
    for (int64_t n = 0; n < 21; ++n) { /* L1: n in 21 */
      t4[c * 21 + n] = (!(c <= 3) ? 0.0f : in0[c * 21 + n]) + (!(c - 4 >= 0 && c - 4 <= 2) ? 0.0f : 5.0f); /* %4 */
    }
  }
  for (int64_t e = 0; e < 7; ++e) { /* L3: e in 7 */
    for (int64_t n = 0; n < 21; ++n) { /* L4: n in 21 */
      t7[e * 21 + n] = t4[e * 21 + n] + (!(e - 1 >= 0 && e - 1 <= 6) ? -7.0f : t4[e * 21 + n - 21]); /* %7 */
    }
  }
  for (int64_t n = 0; n < 21; ++n) { /* L6: n in 21 */
    for (int64_t e = 0; e < 7; ++e) { /* L7: e in 7 */
      out0[n * 7 + e] = t7[e * 21 + n]; /* %8 */
    }
  }
}
