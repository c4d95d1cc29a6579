// How the ranks of a communicator find each other before any Go runs: the unique id, and the roll call under it.
//
// ncclGetUniqueId must not start the Go core, because small programs make an id, fork their ranks and call init in the children.
// So the process that makes ids answers the roll call in C: one listener and one thread per process for all its ids. The ranks'
// side is Go (core/boot); a test there compares its constants with the ones in this header.
//
//   rank                                       maker of the id ("root")
//     | ------------- connects ------------------> |
//     | <------------ challenge ------------------ |   version, which root this is, nonce
//     | ------------- hello ---------------------> |   number of the id, rank, nranks, contact; proves the secret
//     | ------------- request (ask) -------------> |   while it waits, if it likes
//     | <------------ answer (missing) ----------- |
//     | <------------ answer (go or failed) ------ |   once all have come: the contacts of ranks r+1, r+2, r+4, ... mod nranks
//
// Several ids (ncclCommInitRankScalable) share the ranks out: id k is for the k-th part of the ranks in their order, the first parts
// being larger by one where it does not come out even. The first rank of a part speaks for it: once the part has met, it comes to the
// maker of the first id, where the speakers meet in a roll call of their own. A part that has failed sends a herald to all makers.
// Who waits for a part at the limit asks its maker who is missing there.
//
// Whoever cannot prove the secret is a stranger: it gets a challenge, some seconds and a place among at most 128, no more.
//
// With an encryption key ranks seal their contacts, which this C passes on unread: it has no cipher, and holds nothing else that others
// must not know. They give a mark of the key, so that the roll call can refuse ranks with different ones.
//
// Fork. The listener and its record lock are inherited. Whoever holds the lock answers; the kernel gives it free when its holder
// dies, and a forked child whose ranks use an inherited id (hccl_meet_join) then takes it and answers in the maker's place.
// Everything here is little-endian. The id, the challenge and the head of the hello keep their layout in every wire version, so
// that two versions can tell each other apart.
#ifndef HCCL_MEET_H
#define HCCL_MEET_H
#include <stddef.h>

enum {
  HCCL_WIRE_VERSION = 4,

  // The unique id: 128 bytes.
  HCCL_ID_SIZE = 128,
  HCCL_ID_MAGIC_VALUE = 0x4449434e, // "NCID"
  HCCL_ID_MAGIC = 0,                // u32
  HCCL_ID_VERSION = 4,              // u16
  HCCL_ID_PORT = 6,                 // u16
  HCCL_ID_NUMBER = 8,               // u64, of this id among those of its root
  HCCL_ID_SECRET = 16,              // 16 bytes
  HCCL_ID_ROOT = 32,                // 8 random bytes that tell roots apart; not secret
  HCCL_ID_FIXED = 40,               // u8: made from NCCL_COMM_ID; rank 0 is the root, and the secret is none
  HCCL_ID_COUNT = 41,               // u8: addresses that follow
  HCCL_ID_LEFT = 42,                // u8: likely ones for which there was no room
  HCCL_ID_ADDRESSES = 43,           // packed, likely ones first and loopback last
  HCCL_ADDRESS_V4 = 0xf4, // a packed address: this and 4 bytes; or IPv6: u8 where zeros stand << 4 | how many, and the other bytes

  // The challenge.
  HCCL_CHALLENGE_SIZE = 32,
  HCCL_CHALLENGE_MAGIC_VALUE = 0x4843434e,
  HCCL_CHALLENGE_MAGIC = 0,   // u32
  HCCL_CHALLENGE_VERSION = 4, // u16
  HCCL_CHALLENGE_ENCRYPTS = 6, // u8: of a rank's listener (core/boot), whether it demands a handshake; 0 here
  HCCL_CHALLENGE_ROOT = 8,    // 8 bytes
  HCCL_CHALLENGE_NONCE = 16,  // 16 bytes

  // The hello: head, library (text), contact (opaque to the root), HMAC over "hccl hello", the challenge and all of these.
  HCCL_HELLO_SIZE = 52,
  HCCL_HELLO_MAGIC_VALUE = 0x4f4c484e,
  HCCL_HELLO_MAGIC = 0,   // u32
  HCCL_HELLO_VERSION = 4, // u16
  HCCL_HELLO_LIBRARY = 6, // u16: length
  HCCL_HELLO_CONTACT = 8, // u32: length
  HCCL_HELLO_RANK = 12,   // u32
  HCCL_HELLO_NRANKS = 16, // u32
  HCCL_HELLO_IDS = 20,    // 3 bytes: how many ids the ranks are shared out to
  HCCL_HELLO_ROLE = 23,   // u8
  HCCL_HELLO_NUMBER = 24, // u64
  HCCL_HELLO_NONCE = 32,  // 16 bytes
  HCCL_HELLO_MARK = 48,   // u32: equal for ranks with the same encryption key, 0: it has none
  HCCL_MAX_LIBRARY = 512,
  HCCL_MAX_CONTACT = 512,
  HCCL_MAX_RANKS = 1 << 20,
  HCCL_MAC_SIZE = 32,

  // What a rank comes as.
  HCCL_MEMBER = 0,  // of the part that the id is for
  HCCL_SPEAKER = 1, // of a part, to the others of its kind
  HCCL_ASKER = 2,   // who of that rank's part is missing?
  HCCL_HERALD = 3,  // the roll call of that rank's part has failed: the payload of the answer stands in the place of the contact

  // A request of a rank that waits.
  HCCL_REQUEST_SIZE = 8,
  HCCL_REQUEST_MAGIC_VALUE = 0x5152434e,
  HCCL_REQUEST_MAGIC = 0, // u32
  HCCL_REQUEST_WHAT = 4,  // u32
  HCCL_ASK = 1,           // who is missing?
  HCCL_TIMEOUT = 2,       // my limit has passed: the roll call has failed
  HCCL_ABORT = 3,         // I was aborted: the roll call has failed

  // An answer: head, payload, HMAC over "hccl answer", the hello's nonce, the challenge, head and payload.
  HCCL_ANSWER_SIZE = 16,
  HCCL_ANSWER_MAGIC_VALUE = 0x574e414e,
  HCCL_ANSWER_MAGIC = 0,  // u32
  HCCL_ANSWER_KIND = 4,   // u16
  HCCL_ANSWER_LENGTH = 8, // u32, of the payload
  HCCL_ANSWER_SERIAL = 12, // u32, counts the answers of a connection from 0
  HCCL_MAX_ANSWER = 1 << 20,
  HCCL_GO = 1,      // u32 count, then for each partner u32 rank, u32 length, contact
  HCCL_MISSING = 2, // u32 how many are missing, then the first of them as u32
  HCCL_FAILED = 3,  // u32 reason, u32 rank that caused it, u32 how many ranks follow, missing ranks as u32, text
  HCCL_ABSENT = 4,  // to an asker, as HCCL_MISSING
  HCCL_MAX_NAMED = 256, // ranks named as missing

  // Reasons for a failed roll call.
  HCCL_WHY_USED = 1,
  HCCL_WHY_DUPLICATE = 2,
  HCCL_WHY_NRANKS = 3,
  HCCL_WHY_VERSION = 4,
  HCCL_WHY_TIMEOUT = 5,
  HCCL_WHY_GONE = 6,
  HCCL_WHY_ABORTED = 7,
  HCCL_WHY_GARBAGE = 8,
  HCCL_WHY_FULL = 9,
  HCCL_WHY_MAKER = 10, // the maker of a part's id cannot be reached
  HCCL_WHY_IDS = 11,   // the ids are not the same ones in the same order on all ranks
  HCCL_WHY_KEY = 12,
};

// Makes a unique id and sees to it that this process answers for it. 0, or an ncclResult_t and a text.
int hccl_meet_new_id(unsigned char id[128], char* err, size_t errlen);

// To be called before a rank of this process meets the others under id: makes this process the root where that falls to it (rank
// 0 of an id made from NCCL_COMM_ID; an inherited id whose maker dies). 0, or an ncclResult_t and a text.
int hccl_meet_join(const unsigned char id[128], int rank, char* err, size_t errlen);

// Connections that were closed because they could not prove a secret in time.
unsigned long long hccl_meet_strangers(void);

// For pthread_atfork. The last one stands in for fork_child where the core was loaded: no id can be used there any more.
void hccl_meet_fork_prepare(void);
void hccl_meet_fork_parent(void);
void hccl_meet_fork_child(void);
void hccl_meet_core_loaded_child(void);
#endif
