/* Gradients of one layer travel on a stream while the next layer's are computed, as a training step does. */
#include "ranks.h"

enum { LAYERS = 8, COUNT = 1 << 18 };

/* Stands for the work of a layer: its gradients depend on the rank. */
static void backward(int layer, int rank, float* gradients) {
  for (size_t k = 0; k < COUNT; k++) gradients[k] = (float)(rank + 1) * (float)(layer + 1) + (float)(k % 10);
}

static void count_up(void* landed) { ++*(int*)landed; }

static void body(int rank, int n, ncclUniqueId id) {
  ncclComm_t comm;
  cudaStream_t stream;
  cudaEvent_t first, last;
  float *gradients[LAYERS], ms;
  int landed = 0;
  MUST(ncclCommInitRank(&comm, n, id, rank));
  MUST(hcclStreamCreate(&stream));
  MUST(hcclEventCreate(&first));
  MUST(hcclEventCreate(&last));

  MUST(hcclEventRecord(first, stream));
  for (int layer = LAYERS - 1; layer >= 0; layer--) {
    MUST(ncclMemAlloc((void**)&gradients[layer], COUNT * sizeof(float)));
    backward(layer, rank, gradients[layer]);
    /* Returns at once: from here to the synchronisation the buffer is the library's. */
    MUST(ncclAllReduce(gradients[layer], gradients[layer], COUNT, ncclFloat, ncclAvg, comm, stream));
    MUST(hcclStreamLaunchHostFunc(stream, count_up, &landed)); /* on a thread of the library, in order */
  }
  MUST(hcclEventRecord(last, stream));
  MUST(hcclStreamSynchronize(stream)); /* errors of all that was queued are told here */
  MUST(hcclEventElapsedTime(&ms, first, last));

  check(landed == LAYERS, "the number of layers");
  for (int layer = 0; layer < LAYERS; layer++) {
    float mean = (float)(n + 1) / 2 * (float)(layer + 1);
    for (size_t k = 0; k < COUNT; k++) check(gradients[layer][k] == mean + (float)(k % 10), "the mean");
    MUST(ncclMemFree(gradients[layer]));
  }
  printf("overlap: rank %d of %d has the means of %d layers, %.1f ms after the first began\n", rank, n, LAYERS, (double)ms);
  MUST(hcclEventDestroy(first));
  MUST(hcclEventDestroy(last));
  MUST(hcclStreamDestroy(stream));
  MUST(ncclCommDestroy(comm));
}

int main(void) { return run_ranks(4, body); }
