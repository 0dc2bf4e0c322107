/* A loop schedule as portable C, written by loopfleet.
 *   cc -std=c11 -O3 -march=native -c FILE   (link with -lm)
 *
 * Program, in float32:
 *   i = 9 u = 21 o = 19 k = 3 n = 5
 *   %0[i, n] = read()
 *   %1[i, n] = add(%0, %0)
 *   %2[u, n] = view(%1) where i = (1 u + -2) / 2, n = 1 n, outside 0
 *   %3[o, k, n] = view(%2) where u = 1 o + 1 k, n = 1 n
 *   %4[k, n] = read()
 *   %5[o, k, n] = multiply(%3, %4)
 *   %6[o, n] = add(%5)
 *   %7[o, n] = write(%6)
 *   %8[n] = max(%5)
 *   %9[n] = write(%8)
 *
 * Loops ("4 r 1": 4 full iterations, then a tail of 1 element):
 * for i in 9 : L0
 *  for n in 5 : L1
 *   %1[i, n] <- add(%0, %0)
 * for o in 19 : L3
 *  for k in 3 : L4
 *   for n in 5 : L5
 *    %5[o, k, n] <- multiply(%3, %4)
 * for n in 5 : L7
 *  for o in 19 : L8
 *   for k in 3 : L9
 *    %8[n] <- max(%5)
 * for o in 19 : L11
 *  for n in 5 : L12
 *   for k in 3 : L13
 *    %6[o, n] <- add(%5)
 *   %9[n] <- write(%8)
 *   %7[o, n] <- write(%6)
 *
 * buffers: dense and row-major, none overlapping another. Inputs are only read, every
 * element of the outputs is written, scratch may hold anything before and after.
 *   [0] input  in0    %0[i, n]: 9 x 5 = 45 elements, 180 bytes
 *   [1] input  in1    %4[k, n]: 3 x 5 = 15 elements, 60 bytes
 *   [2] output out0   %7[o, n]: 19 x 5 = 95 elements, 380 bytes
 *   [3] output out1   %9[n]: 5 elements, 20 bytes
 *   [4] scratch: 336 elements, 1344 bytes, of which
 *       t1     at 288: %1[i, n], 9 x 5 = 45 elements
 *       t5     at 0: %5[o, k, n], 19 x 3 x 5 = 285 elements
 *       t6     at 304: %6[o, n], 1 x 1 = 1 element
 *       t8     at 288: %8[n], 5 elements
 */
#include <math.h>
#include <stdint.h>

static float larger(float a, float b) { return a > b ? a : b; }

void loopfleet_kernel(float* const* buffers);

void loopfleet_kernel(float* const* buffers) {
  const float* restrict in0 = buffers[0];
  const float* restrict in1 = buffers[1];
  float* restrict out0 = buffers[2];
  float* restrict out1 = buffers[3];
  float* t1 = buffers[4] + 288;
  float* restrict t5 = buffers[4];
  float* t6 = buffers[4] + 304;
  float* t8 = buffers[4] + 288;
  for (int64_t i = 0; i < 9; ++i) { /* L0: i in 9 */
    for (int64_t n = 0; n < 5; ++n) { /* L1: n in 5 */
      t1[i * 5 + n] = in0[i * 5 + n] + in0[i * 5 + n]; /* %1 */
    }
  }
  for (int64_t o = 0; o < 19; ++o) { /* L3: o in 19 */
    for (int64_t k = 0; k < 3; ++k) { /* L4: k in 3 */
      for (int64_t n = 0; n < 5; ++n) { /* L5: n in 5 */
        t5[o * 15 + k * 5 + n] = (!(o + k - 2 >= 0 && o + k - 2 <= 16 && (o + k - 2) % 2 == 0) ? 0.0f : t1[n + (o + k - 2) / 2 * 5]) * in1[k * 5 + n]; /* %5 */
      }
    }
  }
  for (int64_t n = 0; n < 5; ++n) { /* L7: n in 5 */
    t8[n] = -INFINITY; /* %8 */
    for (int64_t o = 0; o < 19; ++o) { /* L8: o in 19 */
      for (int64_t k = 0; k < 3; ++k) { /* L9: k in 3 */
        t8[n] = larger(t8[n], t5[o * 15 + k * 5 + n]); /* %8 */
      }
    }
  }
  for (int64_t o = 0; o < 19; ++o) { /* L11: o in 19 */
    for (int64_t n = 0; n < 5; ++n) { /* L12: n in 5 */
      t6[0] = 0.0f; /* %6 */
      for (int64_t k = 0; k < 3; ++k) { /* L13: k in 3 */
        t6[0] += t5[o * 15 + k * 5 + n]; /* %6 */
      }
      {
        out1[n] = t8[n]; /* %9 */
        out0[o * 5 + n] = t6[0]; /* %7 */
      }
    }
  }
}
