/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Declares the C interface for other languages: what a program may ask of Ullage's runtime and tell it. The Python
 * package `ullage` calls it through ctypes. A process that `ullage run` did not start need not have the library. If it
 * has, ullage_active() returns 0 there, figures are 0 and the other calls do nothing, until ullage_begin() is called.
 * Any thread may call. No call keeps a pointer or throws. Only ullage_touch() may wait for another process. If there is
 * no room, `ullage run` counts the tree of processes again, which takes some seconds at most. Functions may be added;
 * existing ones do not change. */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns 1 if torch's allocator (for the CPU or a card) in this process is a budgeted pool, else 0. */
int ullage_active(void);

/* Bytes, as of now. */
struct ullage_memory {
  uint64_t budget;   /* stated, for the whole tree of processes; 0: unlimited */
  uint64_t resident; /* of this process, as the operating system counts; or what it holds of the card */
  uint64_t live;     /* of tensors in the pool, moved out or not */
};
/* Fills *out unless it is null. */
void ullage_memory_status(struct ullage_memory* out);

/* Reports that a step of the program ended. From the first call on, steps are counted and planned by these calls. If a
 * program never calls it, the steps to plan are found in its ops. Steps are then counted in Python only, by the calls
 * of its optimizers. */
void ullage_mark_step(void);

/* Begins a budget in a running process that `ullage run` did not start. A later call only changes the stated bytes.
 * Torch must be mapped. Existing tensors stay where they are, outside the pool; new ones can be moved. `memory`,
 * `spill`: as for `ullage run --memory SIZE --spill ...`; `spill` null: the default. `record`: the absolute path of the
 * trace file; null: nothing is recorded. `spill` and `record` have no effect after the first call. Returns null, or
 * what is wrong as text that is valid until this thread calls again. */
const char* ullage_begin(const char* memory, const char* spill, const char* record);

/* Lifts that budget: the pool stays, unlimited until ullage_begin() is called again. What was recorded so far is
 * written. */
void ullage_lift(void);

/* Returns 1 if forward passes are to run under bf16 autocast now, by `ullage run --allow bf16,if-needed`. */
int ullage_casts(void);

/* Names the parameter whose bytes begin at `data` ("layer4.2.conv1.weight") in what is recorded. */
void ullage_name_parameter(const void* data, const char* name);

/* Call it before `bytes` from `data` on are read or written past torch's dispatcher (by a compiled region, a system
 * call). Brings the storage around `data` back if it was moved out. `data` lies in a storage's memory, as
 * Tensor.data_ptr() gives it; other addresses are ignored. */
void ullage_touch(const void* data, uint64_t bytes);

#ifdef __cplusplus
}
#endif
