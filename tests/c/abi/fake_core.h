/* The state of the core that the tests of the shim put in place of the real one. */
#ifndef ABI_FAKE_CORE_H
#define ABI_FAKE_CORE_H
#include "../../../capi/core_table.h"
#include <signal.h>

enum { FAKE_ITEMS = 64, FAKE_RANKS = 8, FAKE_WORD = 64 };

struct fake_item {
  struct hccl_item item;
  char algo[FAKE_WORD], name[FAKE_WORD]; /* copies, as the shim's may go */
  uint64_t rcounts[FAKE_RANKS], rdispls[FAKE_RANKS], scounts[FAKE_RANKS], sdispls[FAKE_RANKS];
};

struct fake {
  const struct hccl_services* services;
  int enqueued, fast, simulated, finalized, destroyed, aborted; /* calls */
  int count;                                                     /* items of the last enqueue or simulate */
  struct fake_item items[FAKE_ITEMS];
  int answer;         /* what enqueue says of each item */
  int not_ready;      /* splits and inits stay unfinished */
  int async;          /* what async_error finds */
  uint64_t ended;     /* the number that was destroyed or aborted last */
  void* hot;          /* given with ready */
  void (*in_fast)(void); /* called within fast, if set */
  int64_t limit;      /* of communicators, as set, or of the last wait */
  int started;        /* requests */
  size_t waited;      /* requests of the last wait */
  int streams;        /* and events, that were made */
  int attached;       /* what attach was told last: threads that enter */
  int stream_call;    /* the last call on a stream or event, and on what */
  void *stream, *event;
  /* As seen while the core was loaded: */
  int signals_blocked; /* all that can be */
  int timer_slack;     /* ns */
  int go_entries;      /* environment entries behind argv that speak to Go */
};
#endif
