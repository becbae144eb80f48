/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What other languages may ask of Ullage's runtime and tell it; Python's package `ullage` calls these through ctypes.
 * C. In a process that `ullage run` did not start the library need not be there at all; where it is, nothing here
 * fails: ullage_active() says 0, figures are 0 and what is told is not heard. Any thread may call; no call waits for
 * another process, keeps a pointer or throws. Functions may be added; those that are here stay as they are. */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 1: a budgeted pool stands behind torch's CPU allocator in this process; else 0. */
int ullage_active(void);

/* Bytes, as of now. */
struct ullage_memory {
  uint64_t budget;   /* stated, of the whole tree of processes; 0: unlimited */
  uint64_t resident; /* of this process, as the operating system counts it */
  uint64_t live;     /* of tensors in the pool, moved out or not */
};
/* Fills *out; nothing where it is null. */
void ullage_memory_status(struct ullage_memory* out);

/* A step of the program ended here. Steps are counted and planned by these from the first one told on; a program that
 * tells none has its steps found in its ops. */
void ullage_mark_step(void);

/* Begins a budget in a process that `ullage run` did not start, in the midst of it; called again it states the budget
 * anew. Torch must be mapped. Tensors that are there stay where they are, outside the pool; those made from now on can
 * be moved. `memory`, `spill`: as of `ullage run --memory SIZE --spill ...`; no spill, null: the default. `record`:
 * where the trace goes, an absolute path; null: nowhere. Spill and record are heeded by the first call alone.
 * Returns null, else what is wrong, in words, which stand until this thread calls again. */
const char* ullage_begin(const char* memory, const char* spill, const char* record);

/* Lifts that budget: the pool stays, unlimited until ullage_begin() is called again. What was recorded so far is
 * written. */
void ullage_lift(void);

/* The parameter whose bytes begin at `data` is called `name` ("layer4.2.conv1.weight") in what is recorded. */
void ullage_name_parameter(const void* data, const char* name);

/* The `bytes` from `data` on are about to be read past torch's dispatcher (by a compiled region, a system call): what
 * was moved out of them is brought back first. `data` lies in a storage's memory, as Tensor.data_ptr() gives it; others
 * are ignored. */
void ullage_touch(const void* data, uint64_t bytes);

#ifdef __cplusplus
}
#endif
