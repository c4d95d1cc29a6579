/* Splits: six ranks as a grid of two rows and three columns, with a communicator for each row and each column.
 *
 *     0 1 2    A rank sums its row and its column by small communicators of their own, which may be used beside the first one
 *     3 4 5    in any order. Ranks that give no colour get none. */
#include "ranks.h"

enum { COLUMNS = 3 };

static int sum(int value, ncclComm_t comm) {
  int total = 0;
  MUST(ncclAllReduce(&value, &total, 1, ncclInt32, ncclSum, comm, NULL));
  return total;
}

static void body(int rank, int n, ncclUniqueId id) {
  ncclComm_t all, row, column, corner;
  int mine = rank / COLUMNS, place = rank % COLUMNS, size, number;
  MUST(ncclCommInitRank(&all, n, id, rank));
  MUST(ncclCommSplit(all, mine, place, &row, NULL));
  MUST(ncclCommSplit(all, place, -mine, &column, NULL)); /* the key orders the ranks: here from the bottom up */
  MUST(ncclCommSplit(all, rank == 0 || rank == n - 1 ? 0 : NCCL_SPLIT_NOCOLOR, rank, &corner, NULL));

  MUST(ncclCommCount(row, &size));
  MUST(ncclCommUserRank(column, &number));
  check(size == COLUMNS, "the size of a row");
  check(number == n / COLUMNS - 1 - mine, "the order of a column");
  check(sum(rank, row) == COLUMNS * mine * COLUMNS + COLUMNS * (COLUMNS - 1) / 2, "a row's sum");
  check(sum(rank, column) == (n / COLUMNS) * place + COLUMNS * (n / COLUMNS) * (n / COLUMNS - 1) / 2, "a column's sum");
  check(sum(rank, all) == n * (n - 1) / 2, "the sum of all");
  if (corner != NULL) check(sum(rank, corner) == n - 1, "the corners' sum");
  else check(rank != 0 && rank != n - 1, "a corner without a communicator");
  if (rank == 0) printf("split: %d ranks in rows of %d\n", n, COLUMNS);

  if (corner != NULL) MUST(ncclCommDestroy(corner));
  MUST(ncclCommDestroy(column));
  MUST(ncclCommDestroy(row));
  MUST(ncclCommDestroy(all));
}

int main(void) { return run_ranks(6, body); }
