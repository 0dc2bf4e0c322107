/* Shortest paths from several nodes of a pseudo-random sparse graph, with a binary heap; prints a
   checksum of the distances. */
#include <limits.h>
#include <stdio.h>

enum { kNodes = 400, kEdgesPerNode = 6, kEdges = kNodes * kEdgesPerNode };

struct edge {
  short target;
  short length;
};

struct heap_entry {
  int distance;
  int node;
};

static struct edge edges[kNodes][kEdgesPerNode];
static int distances[kNodes];
static struct heap_entry heap[kEdges + kNodes];
static int heap_size;

static unsigned state = 99;

static unsigned next_random(void) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

static void push(int distance, int node) {
  int at = heap_size++;
  while (at > 0 && heap[(at - 1) / 2].distance > distance) {
    heap[at] = heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap[at].distance = distance;
  heap[at].node = node;
}

static struct heap_entry pop(void) {
  struct heap_entry top = heap[0], last = heap[--heap_size];
  int at = 0;
  for (;;) {
    int child = 2 * at + 1;
    if (child >= heap_size) break;
    if (child + 1 < heap_size && heap[child + 1].distance < heap[child].distance) ++child;
    if (heap[child].distance >= last.distance) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = last;
  return top;
}

static void make_graph(void) {
  for (int node = 0; node < kNodes; ++node) {
    /* The first edge closes a ring, so every node can be reached. */
    edges[node][0].target = (short)((node + 1) % kNodes);
    edges[node][0].length = 1000;
    for (int i = 1; i < kEdgesPerNode; ++i) {
      edges[node][i].target = (short)(next_random() % kNodes);
      edges[node][i].length = (short)(1 + next_random() % 500);
    }
  }
}

static void search_from(int start) {
  for (int node = 0; node < kNodes; ++node) distances[node] = INT_MAX;
  distances[start] = 0;
  heap_size = 0;
  push(0, start);
  while (heap_size > 0) {
    struct heap_entry nearest = pop();
    if (nearest.distance > distances[nearest.node]) continue;
    for (int i = 0; i < kEdgesPerNode; ++i) {
      const struct edge* edge = &edges[nearest.node][i];
      int distance = nearest.distance + edge->length;
      if (distance < distances[edge->target]) {
        distances[edge->target] = distance;
        push(distance, edge->target);
      }
    }
  }
}

int main(void) {
  unsigned long long sum = 0;
  int farthest = 0;
  make_graph();
  for (int start = 0; start < kNodes; start += 25) {
    search_from(start);
    for (int node = 0; node < kNodes; ++node) {
      sum = sum * 31 + (unsigned)distances[node];
      if (distances[node] > farthest) farthest = distances[node];
    }
  }
  printf("dijkstra %016llx %d\n", sum, farthest);
  return 0;
}
