// Checks of commands, and the choice of loops for them.
#include "shape.h"

static int slot(int type) {
  if (type < HCCL_TYPES) return type;
  return type == HCCL_I128 ? HCCL_TYPES : type == HCCL_U128 ? HCCL_TYPES + 1 : -1;
}

static size_t size_of(int slot) {
  static const unsigned char size[HCCL_SLOTS] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 2, 2, 1, 16, 16};
  return size[slot];
}

// The accumulators that slot's elements widen to, besides their own type.
static int wide(int slot) {
  static const signed char acc[HCCL_SLOTS] = {HCCL_I64, HCCL_U64, HCCL_I64, HCCL_U64, HCCL_TYPES, HCCL_TYPES + 1, HCCL_F32, -1, -1,
                                              HCCL_F32, HCCL_F32, HCCL_F32, HCCL_I64, HCCL_U64, -1, -1, -1};
  return acc[slot];
}

static int is_float(int slot) { return slot >= HCCL_F16 && slot <= HCCL_E5M2; }

static int counts_fit(const struct hccl_cmd* c) {
  return c->nsrc >= 1 && c->nsrc <= HCCL_MAX_SRC && c->ndst >= 1 && c->ndst <= 2 && c->scaled >= -1 && c->scaled < (int)c->nsrc;
}

static int copy_shape(const struct hccl_cmd* c, const struct hccl_kernels* k, struct shape* s) {
  int src = slot(c->src_type);
  if (src < 0 || c->nsrc != 1) return 0;
  s->src_size = size_of(src);
  s->scale = c->scaled == 0 ? k->scale[src] : NULL;
  return c->scaled < 0 || s->scale;
}

// divisor is what the result is divided by. A single source of floats or truth without any step left would keep the bits of its NaN
// or true: division by 1 makes them canonical.
static uint64_t divisor(const struct hccl_cmd* c, int src, int acc, int dst) {
  int partial = dst == acc && src != acc;
  if (c->red == HCCL_AVG && c->div != 0 && !partial) return c->div;
  return (is_float(acc) || acc == HCCL_BOOL) && dst == acc && c->nsrc + (c->init != 0) == 1 ? 1 : 0;
}

static int reduce_shape(const struct hccl_cmd* c, const struct hccl_kernels* k, struct shape* s) {
  int src = slot(c->src_type), acc = slot(c->acc), dst = slot(c->dst_type);
  if (src < 0 || acc < 0 || dst < 0 || c->red >= HCCL_REDS || c->div > INT32_MAX) return 0;
  if ((src != acc && wide(src) != acc) || (dst != acc && wide(dst) != acc)) return 0;
  if (acc == HCCL_BOOL && c->red == HCCL_AVG) return 0;
  int red = c->red == HCCL_AVG || c->red == HCCL_PREMULSUM ? HCCL_SUM : c->red; // sums with a step before or behind
  s->src_size = size_of(src);
  s->acc_size = size_of(acc);
  s->dst_size = size_of(dst);
  s->scale = c->scaled >= 0 ? k->scale[src] : NULL;
  s->widen = src != acc ? k->widen[src] : NULL;
  s->round = dst != acc ? k->round[dst] : NULL;
  s->op = k->op[acc][red];
  s->add = red == HCCL_SUM && src != acc ? k->add[src] : NULL;
  s->sumk = red == HCCL_SUM && c->nsrc > 2 && c->scaled < 0 && c->init == 0 ? k->sumk[src] : NULL;
  s->div = divisor(c, src, acc, dst);
  int power = (s->div & (s->div - 1)) == 0; // of two (or no divisor): its reciprocal is exact
  s->roundk = red == HCCL_SUM && src == dst && power && c->scaled < 0 && c->init == 0 ? k->roundk[src] : NULL;
  s->factor = s->div ? 1 / (float)s->div : 1;
  s->divide = s->div ? k->divide[acc] : NULL;
  int plain = c->nsrc == 2 && c->init == 0 && c->scaled < 0 && src == dst && !s->div;
  s->two = !plain ? NULL : src == acc ? s->op : red == HCCL_SUM ? k->sum2[src] : NULL;
  s->both = plain && src == acc && red == HCCL_SUM ? k->both[src] : NULL;
  s->streamed = plain && src == acc && red == HCCL_SUM ? k->streamed[src] : NULL;
  return s->op && (c->scaled < 0 || s->scale) && (!s->div || s->divide);
}

int shape_of(const struct hccl_cmd* c, const struct hccl_kernels* k, struct shape* s) {
  if (!counts_fit(c)) return 0;
  return c->op == HCCL_COPY ? copy_shape(c, k, s) : c->op == HCCL_REDUCE ? reduce_shape(c, k, s) : 0;
}
