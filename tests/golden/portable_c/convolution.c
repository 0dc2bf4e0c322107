/* A loop schedule as portable C, written by loopfleet.
 *   cc -std=c11 -O3 -march=native -c FILE   (link with -lm)
 *
 * Program, in float32:
 *   n = 1 c = 2 h = 6 w = 6 ho = 4 wo = 4 kh = 3 kw = 3 m = 3
 *   %0[n, c, h, w] = read()
 *   %1[n, c, ho, wo, kh, kw] = view(%0) where n = 1 n, c = 1 c, h = 1 ho + 1 kh, w = 1 wo + 1 kw
 *   %2[m, c, kh, kw] = read()
 *   %3[n, c, ho, wo, kh, kw, m] = multiply(%1, %2)
 *   %4[n, m, ho, wo] = add(%3)
 *   %5[n, m, ho, wo] = write(%4)
 *
 * Loops ("4 r 1": 4 full iterations, then a tail of 1 element):
 * for n in 1 : L0
 *  for c in 2 : L1
 *   for ho in 4 : L2
 *    for wo in 4 : L3
 *     for kh in 3 : L4
 *      for kw in 3 : L5
 *       for m in 3 : L6
 *        %3[n, c, ho, wo, kh, kw, m] <- multiply(%1, %2)
 *        %4[n, m, ho, wo] <- add(%3)
 *  for ho in 4 : L9
 *   for wo in 4 : L10
 *    for m in 3 : L11
 *     %5[n, m, ho, wo] <- write(%4)
 *
 * buffers: dense and row-major, none overlapping another. Inputs are only read, every
 * element of the outputs is written, scratch may hold anything before and after.
 *   [0] input  in0    %0[n, c, h, w]: 1 x 2 x 6 x 6 = 72 elements, 288 bytes
 *   [1] input  in1    %2[m, c, kh, kw]: 3 x 2 x 3 x 3 = 54 elements, 216 bytes
 *   [2] output out0   %5[n, m, ho, wo]: 1 x 3 x 4 x 4 = 48 elements, 192 bytes
 *   [3] scratch: 48 elements, 192 bytes, of which
 *       t4     at 0: %4[n, m, ho, wo], 1 x 3 x 4 x 4 = 48 elements
 */
#include <stdint.h>

void loopfleet_kernel(float* const* buffers);

void loopfleet_kernel(float* const* buffers) {
  const float* restrict in0 = buffers[0];
  const float* restrict in1 = buffers[1];
  float* restrict out0 = buffers[2];
  float* restrict t4 = buffers[3];
  for (int64_t n = 0; n < 1; ++n) { /* L0: n in 1 */
    for (int64_t m_init = 0; m_init < 3; ++m_init) {
      for (int64_t ho_init = 0; ho_init < 4; ++ho_init) {
        for (int64_t wo_init = 0; wo_init < 4; ++wo_init) {
          t4[m_init * 16 + ho_init * 4 + wo_init] = 0.0f; /* %4 */
        }
      }
    }
    for (int64_t c = 0; c < 2; ++c) { /* L1: c in 2 */
      for (int64_t ho = 0; ho < 4; ++ho) { /* L2: ho in 4 */
        for (int64_t wo = 0; wo < 4; ++wo) { /* L3: wo in 4 */
          for (int64_t kh = 0; kh < 3; ++kh) { /* L4: kh in 3 */
            for (int64_t kw = 0; kw < 3; ++kw) { /* L5: kw in 3 */
              for (int64_t m = 0; m < 3; ++m) { /* L6: m in 3 */
                const float v3 = in0[c * 36 + (ho + kh) * 6 + wo + kw] * in1[m * 18 + c * 9 + kh * 3 + kw]; /* multiply */
                t4[m * 16 + ho * 4 + wo] += v3; /* %4 */
              }
            }
          }
        }
      }
    }
    for (int64_t ho = 0; ho < 4; ++ho) { /* L9: ho in 4 */
      for (int64_t wo = 0; wo < 4; ++wo) { /* L10: wo in 4 */
        for (int64_t m = 0; m < 3; ++m) { /* L11: m in 3 */
          out0[n * 48 + m * 16 + ho * 4 + wo] = t4[m * 16 + ho * 4 + wo]; /* %5 */
        }
      }
    }
  }
}
