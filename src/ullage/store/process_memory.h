// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads from /proc what processes hold. Whether a budget was kept is judged by these figures.

#include "ullage/base/bytes.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ullage::store {

// Resident bytes now (/proc/self/statm). About 5 us.
Bytes resident_now();

// The most resident bytes since the process began (VmHWM of /proc/self/status), as /usr/bin/time prints. About 30 us.
Bytes resident_peak();

// Resident bytes of another process of the same user; zero if it is gone.
Bytes resident_of(std::int32_t pid);

// What the system has swapped out of a process (VmSwap); zero if it is gone. About 30 us.
Bytes swapped_of(std::int32_t pid);

// Resident bytes of a process in two parts, both zero if it is gone. About 10 us. A write to a private mapping of a
// file moves a page from `files` to `anonymous`.
struct ResidentPages {
  Bytes files;      // pages of files and of shared memory
  Bytes anonymous;  // the process's own: heap, stacks, copies of a file's pages

  Bytes all() const { return files + anonymous; }
};
ResidentPages resident_pages_of(std::int32_t pid);

// Resident bytes of a process, by the kernel's accounts of shared pages (smaps_rollup). Takes milliseconds for a large
// process. If the kernel keeps no such accounts, every page counts whole and as shared with others.
struct SharedPages {
  Bytes proportional;        // a page that n processes share counts 1/n (Pss)
  Bytes files_proportional;  // the part of it that is backed by files: code and data of libraries, mapped files
  Bytes clean_alone;         // pages that only this process has and has not written; nearly all are backed by files
  Bytes with_others;         // pages that other processes have too, whole
  Bytes written;             // of with_others, those that were written: after a fork, the heap that both have
};
SharedPages shared_pages_of(std::int32_t pid);
// SharedPages::proportional. The figures of a tree add up.
Bytes proportional_of(std::int32_t pid);

// Resident bytes of a process that are backed by files, shared or not (RssFile of status). Zero if it is gone.
Bytes file_pages_of(std::int32_t pid);

// The number of minor page faults of a process so far, times the size of a small page (minflt of /proc/PID/stat).
// Copies of shared pages took no more bytes, because each copy is such a fault. Zero if the process is gone.
Bytes faulted_of(std::int32_t pid);

// Returns false if the process has ended or never existed. resident_of() does not show this: it is already zero while a
// process is ending and the system is still taking its memory back.
bool holds_memory(std::int32_t pid);

// `root` and all processes that descend from it, `root` first. Includes processes that have ended but were not waited
// for. Lacks those whose parent has ended, because they no longer descend from `root`.
std::vector<std::int32_t> process_tree(std::int32_t root);
// Kills these processes, the root last, because after its end its children no longer descend from it.
void kill_tree(std::int32_t root);
// The first 15 letters of the name of the program that the process runs; "" if it is gone.
std::string name_of(std::int32_t pid);
// The pid of the process that started this one, or of the one that has it since its parent ended. Zero if it is gone.
std::int32_t parent_of(std::int32_t pid);
// Where the process's stack begins. Zero if the system does not say, or the process is gone.
Address stack_of(std::int32_t pid);
// Returns whether two processes have one memory between them, as a child of vfork() and its parent do until it runs
// another program. Each then shows all pages as its own. False if the system does not say.
bool share_memory(std::int32_t one, std::int32_t other);
// Returns the pid of the newest process or thread of the machine (of the container, if it has pids of its own). Takes
// microseconds. Zero if the system does not say.
std::int32_t newest_pid();

}  // namespace ullage::store
