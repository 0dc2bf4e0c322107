/* Looks for words in a made-up text with Horspool's, Knuth, Morris and Pratt's, and the plain
   algorithm, which must agree, and prints how often each is there. Status 1: they do not. */
#include <stdio.h>
#include <string.h>

enum { kLength = 30000, kLongest = 16 };

static char text[kLength + 1];

static const char* const words[] = {"a",      "the",      "abab",     "tree",       "loop",
                                    "branch", "abcabcabd", "register", "schedule",   "instruction",
                                    "zzzz",   "compilers"};
enum { kWords = sizeof words / sizeof words[0] };

static void make_text(void) {
  unsigned state = 4711;
  int at = 0;
  while (at < kLength) {
    state = state * 1103515245u + 12345u;
    unsigned choice = state >> 16 & 31u;
    if (choice < kWords) {
      for (const char* c = words[choice]; *c != '\0' && at < kLength; ++c) text[at++] = *c;
    } else {
      text[at++] = (char)("abcdet "[choice % 7]);
    }
  }
  text[kLength] = '\0';
}

static int count_plainly(const char* word) {
  int count = 0;
  size_t length = strlen(word);
  for (const char* at = text; *at != '\0'; ++at) count += strncmp(at, word, length) == 0;
  return count;
}

static int count_by_horspool(const char* word) {
  int length = (int)strlen(word), count = 0, skips[256];
  for (int c = 0; c < 256; ++c) skips[c] = length;
  for (int i = 0; i < length - 1; ++i) skips[(unsigned char)word[i]] = length - 1 - i;
  for (int at = 0; at + length <= kLength; at += skips[(unsigned char)text[at + length - 1]]) {
    int i = length - 1;
    while (i >= 0 && text[at + i] == word[i]) --i;
    count += i < 0;
  }
  return count;
}

static int count_by_failures(const char* word) {
  int failures[kLongest] = {0}, length = (int)strlen(word), count = 0, matched = 0;
  for (int i = 1; i < length; ++i) {
    int border = failures[i - 1];
    while (border > 0 && word[i] != word[border]) border = failures[border - 1];
    failures[i] = border + (word[i] == word[border]);
  }
  for (const char* at = text; *at != '\0'; ++at) {
    while (matched > 0 && (matched == length || *at != word[matched])) {
      matched = failures[matched - 1];
    }
    matched += *at == word[matched];
    count += matched == length;
  }
  return count;
}

int main(void) {
  unsigned sum = 0;
  make_text();
  for (int i = 0; i < kWords; ++i) {
    int count = count_plainly(words[i]);
    if (count_by_horspool(words[i]) != count || count_by_failures(words[i]) != count) return 1;
    sum = sum * 131u + (unsigned)count;
    printf("%s %d\n", words[i], count);
  }
  printf("stringsearch %08x\n", sum);
  return 0;
}
