/* Counts the set bits of pseudo-random words in five ways, which must agree, and prints the totals.
   Status 1: they do not. */
#include <stdint.h>
#include <stdio.h>

enum { kWords = 20000 };

static int table[256];

static int by_shifting(uint32_t word) {
  int count = 0;
  for (int bit = 0; bit < 32; ++bit) count += (int)(word >> bit & 1u);
  return count;
}

static int by_clearing_the_lowest(uint32_t word) {
  int count = 0;
  while (word != 0) {
    word &= word - 1;
    ++count;
  }
  return count;
}

static int by_adding_in_parallel(uint32_t word) {
  word = word - (word >> 1 & 0x55555555u);
  word = (word & 0x33333333u) + (word >> 2 & 0x33333333u);
  word = (word + (word >> 4)) & 0x0f0f0f0fu;
  return (int)(word * 0x01010101u >> 24);
}

static int by_table(uint32_t word) {
  const unsigned char* bytes = (const unsigned char*)&word;
  return table[bytes[0]] + table[bytes[1]] + table[bytes[2]] + table[bytes[3]];
}

static int by_halves(uint32_t word, int width) {
  if (width == 1) return (int)(word & 1u);
  return by_halves(word >> width / 2, width / 2) +
         by_halves(word & ((1u << width / 2) - 1), width / 2);
}

static int recursively(uint32_t word) { return by_halves(word, 32); }

typedef int (*counter)(uint32_t);
static const counter counters[] = {by_shifting, by_clearing_the_lowest, by_adding_in_parallel,
                                   by_table, recursively};
enum { kCounters = sizeof counters / sizeof counters[0] };

int main(void) {
  long totals[kCounters] = {0};
  uint32_t weighted = 0;
  for (int i = 1; i < 256; ++i) table[i] = table[i / 2] + i % 2;
  for (int way = 0; way < kCounters; ++way) {
    uint32_t word = 0x9e3779b9u;
    for (int i = 0; i < kWords; ++i) {
      int count = counters[way](word);
      totals[way] += count;
      weighted = weighted * 33u + (uint32_t)count;
      word = word * 69069u + 12345u;
    }
  }
  for (int way = 1; way < kCounters; ++way) {
    if (totals[way] != totals[0]) return 1;
  }
  printf("bitcount %ld %08x\n", totals[0], (unsigned)weighted);
  return 0;
}
