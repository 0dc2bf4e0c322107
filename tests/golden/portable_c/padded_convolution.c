/* A loop schedule as portable C, written by loopfleet.
 *   cc -std=c11 -O3 -march=native -c FILE   (link with -lm)
 *
 * Program, in float32:
 *   c = 3 h = 5 w = 18 y = 5 x = 18 i = 3 j = 3 m = 4
 *   %0[c, h, w] = read()
 *   %1[c, y, x, i, j] = view(%0) where c = 1 c, h = 1 y + 1 i + -1, w = 1 x + 1 j + -1, outside 1
 *   %2[m, c, i, j] = read()
 *   %3[c, y, x, i, j, m] = multiply(%1, %2)
 *   %4[m, y, x] = add(%3)
 *   %5[m, y, x] = write(%4)
 *
 * Loops ("4 r 1": 4 full iterations, then a tail of 1 element):
 * for c in 3 : L0
 *  for y in 5 : L1
 *   for x in 18 : L2
 *    for i in 3 : L3
 *     for j in 3 : L4
 *      for m in 4 : L5
 *       %3[c, y, x, i, j, m] <- multiply(%1, %2)
 * for m in 4 : L7
 *  for y in 5 : L8
 *   for x in 18 : L9
 *    for c in 3 : L10
 *     for i in 3 : L11
 *      for j in 3 : L12
 *       %4[m, y, x] <- add(%3)
 *    %5[m, y, x] <- write(%4)
 *
 * buffers: dense and row-major, none overlapping another. Inputs are only read, every
 * element of the outputs is written, scratch may hold anything before and after.
 *   [0] input  in0    %0[c, h, w]: 3 x 5 x 18 = 270 elements, 1080 bytes
 *   [1] input  in1    %2[m, c, i, j]: 4 x 3 x 3 x 3 = 108 elements, 432 bytes
 *   [2] output out0   %5[m, y, x]: 4 x 5 x 18 = 360 elements, 1440 bytes
 *   [3] scratch: 9744 elements, 38976 bytes, of which
 *       t3     at 0: %3[c, y, x, i, j, m], 3 x 5 x 18 x 3 x 3 x 4 = 9720 elements
 *       t4     at 9728: %4[m, y, x], 1 x 1 x 1 = 1 element
 */
#include <stdint.h>

void loopfleet_kernel(float* const* buffers);

void loopfleet_kernel(float* const* buffers) {
  const float* restrict in0 = buffers[0];
  const float* restrict in1 = buffers[1];
  float* restrict out0 = buffers[2];
  float* restrict t3 = buffers[3];
  float* restrict t4 = buffers[3] + 9728;
  for (int64_t c = 0; c < 3; ++c) { /* L0: c in 3 */
    for (int64_t y = 0; y < 5; ++y) { /* L1: y in 5 */
      for (int64_t x = 0; x < 18; ++x) { /* L2: x in 18 */
        for (int64_t i = 0; i < 3; ++i) { /* L3: i in 3 */
          for (int64_t j = 0; j < 3; ++j) { /* L4: j in 3 */
            for (int64_t m = 0; m < 4; ++m) { /* L5: m in 4 */
              t3[c * 3240 + y * 648 + x * 36 + i * 12 + j * 4 + m] = (!(y + i - 1 >= 0 && y + i - 1 <= 4) ? 1.0f : !(x + j - 1 >= 0 && x + j - 1 <= 17) ? 1.0f : in0[c * 90 + (y + i) * 18 + x + j - 19]) * in1[m * 27 + c * 9 + i * 3 + j]; /* %3 */
            }
          }
        }
      }
    }
  }
  for (int64_t m = 0; m < 4; ++m) { /* L7: m in 4 */
    for (int64_t y = 0; y < 5; ++y) { /* L8: y in 5 */
      for (int64_t x = 0; x < 18; ++x) { /* L9: x in 18 */
        t4[0] = 0.0f; /* %4 */
        for (int64_t c = 0; c < 3; ++c) { /* L10: c in 3 */
          for (int64_t i = 0; i < 3; ++i) { /* L11: i in 3 */
            for (int64_t j = 0; j < 3; ++j) { /* L12: j in 3 */
              t4[0] += t3[c * 3240 + y * 648 + x * 36 + i * 12 + j * 4 + m]; /* %4 */
            }
          }
        }
        out0[m * 90 + y * 18 + x] = t4[0]; /* %5 */
      }
    }
  }
}
