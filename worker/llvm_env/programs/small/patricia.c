/* A PATRICIA tree of pseudo-random 32-bit addresses: inserts them, looks up some that are there and
   some that are not, and prints a checksum of its shape. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kAddresses = 3000 };

struct node {
  uint32_t key;
  int bit; /* that decides between left and right; smaller than those below, or it leads upwards */
  struct node* left;
  struct node* right;
};

static uint32_t state = 2463534242u;

static uint32_t next_random(void) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

static int bit_of(uint32_t key, int bit) { return (int)(key >> (31 - bit) & 1u); }

static struct node* find(struct node* root, uint32_t key) {
  int last = -1;
  struct node* at = root->left;
  while (at->bit > last) {
    last = at->bit;
    at = bit_of(key, at->bit) ? at->right : at->left;
  }
  return at;
}

/* 1: inserted, 0: it was there, -1: no memory. */
static int insert(struct node* root, uint32_t key) {
  struct node* nearest = find(root, key);
  if (nearest->key == key) return 0;
  int bit = 0;
  while (bit_of(nearest->key, bit) == bit_of(key, bit)) ++bit;
  struct node* parent = root;
  struct node* at = root->left;
  while (at->bit > parent->bit && at->bit < bit) {
    parent = at;
    at = bit_of(key, at->bit) ? at->right : at->left;
  }
  struct node* added = malloc(sizeof *added);
  if (added == NULL) return -1;
  added->key = key;
  added->bit = bit;
  added->left = bit_of(key, bit) ? at : added;
  added->right = bit_of(key, bit) ? added : at;
  if (parent == root || !bit_of(key, parent->bit)) {
    parent->left = added;
  } else {
    parent->right = added;
  }
  return 1;
}

static uint32_t shape_of(const struct node* node, int last, int depth) {
  if (node->bit <= last) return node->key ^ (uint32_t)depth;
  uint32_t left = shape_of(node->left, node->bit, depth + 1);
  return left * 31u + shape_of(node->right, node->bit, depth + 1) + (uint32_t)node->bit;
}

static void destroy(struct node* node, int last) {
  if (node->bit <= last) return;
  destroy(node->left, node->bit);
  destroy(node->right, node->bit);
  free(node);
}

int main(void) {
  struct node root = {0, -1, &root, NULL};
  int inserted = 0, found = 0;
  for (int i = 0; i < kAddresses; ++i) {
    /* Half of the addresses share a network, so their paths are long. */
    uint32_t address = next_random();
    if (i % 2 == 0) address = 0x0a000000u | (address & 0xffffu);
    int result = insert(&root, address);
    if (result < 0) return 1;
    inserted += result;
  }
  state = 2463534242u;
  for (int i = 0; i < 2 * kAddresses; ++i) {
    uint32_t address = next_random();
    if (i % 4 == 0) address = 0x0a000000u | (address & 0xffffu);
    found += find(&root, address)->key == address;
  }
  printf("patricia %d %d %08x\n", inserted, found, (unsigned)shape_of(root.left, -1, 0));
  destroy(root.left, -1);
  return 0;
}
