/* Sorts 2,000 pseudo-random records, by one key and then by another, and prints a checksum of the
   order. */
#include <stdio.h>
#include <stdlib.h>

enum { kRecords = 2000 };

struct record {
  unsigned key;
  int weight;
  char name[8];
};

static unsigned state = 12345;

static unsigned next_random(void) {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}

static void swap_records(struct record* a, struct record* b) {
  struct record kept = *a;
  *a = *b;
  *b = kept;
}

typedef int (*order)(const struct record*, const struct record*);

static int by_key(const struct record* a, const struct record* b) {
  return (a->key > b->key) - (a->key < b->key);
}

static int by_weight_and_name(const struct record* a, const struct record* b) {
  if (a->weight != b->weight) return a->weight < b->weight ? -1 : 1;
  for (int i = 0; i < 8; ++i) {
    if (a->name[i] != b->name[i]) return a->name[i] < b->name[i] ? -1 : 1;
  }
  return by_key(a, b);
}

static void insertion_sort(struct record* records, int count, order compare) {
  for (int i = 1; i < count; ++i) {
    for (int j = i; j > 0 && compare(&records[j], &records[j - 1]) < 0; --j) {
      swap_records(&records[j], &records[j - 1]);
    }
  }
}

static void quicksort(struct record* records, int count, order compare) {
  while (count > 12) {
    int middle = count / 2, left = 0, right = count - 1;
    if (compare(&records[middle], &records[0]) < 0) swap_records(&records[middle], &records[0]);
    if (compare(&records[right], &records[middle]) < 0) {
      swap_records(&records[right], &records[middle]);
      if (compare(&records[middle], &records[0]) < 0) swap_records(&records[middle], &records[0]);
    }
    struct record pivot = records[middle];
    while (left <= right) {
      while (compare(&records[left], &pivot) < 0) ++left;
      while (compare(&pivot, &records[right]) < 0) --right;
      if (left <= right) swap_records(&records[left++], &records[right--]);
    }
    if (right + 1 < count - left) {
      quicksort(records, right + 1, compare);
      records += left;
      count -= left;
    } else {
      quicksort(records + left, count - left, compare);
      count = right + 1;
    }
  }
  insertion_sort(records, count, compare);
}

static unsigned checksum_of(const struct record* records, int count) {
  unsigned sum = 2166136261u;
  for (int i = 0; i < count; ++i) {
    sum = (sum ^ records[i].key) * 16777619u;
    sum = (sum ^ (unsigned)records[i].name[i % 8]) * 16777619u;
  }
  return sum;
}

int main(void) {
  struct record* records = malloc(kRecords * sizeof *records);
  if (records == NULL) return 1;
  for (int i = 0; i < kRecords; ++i) {
    records[i].key = next_random();
    records[i].weight = (int)(next_random() % 20);
    for (int k = 0; k < 8; ++k) records[i].name[k] = (char)('a' + next_random() % 26);
  }
  quicksort(records, kRecords, by_key);
  unsigned first = checksum_of(records, kRecords);
  quicksort(records, kRecords, by_weight_and_name);
  printf("qsort %08x %08x\n", first, checksum_of(records, kRecords));
  free(records);
  return 0;
}
