// SPDX-License-Identifier: Apache-2.0
#pragma once

// A Python class that counts a program's steps by the calls of its optimizers. The scripts that the runtime and dry
// runs put into Python processes begin with it.

namespace ullage {

inline constexpr const char* kOptimizerSteps = R"ullage_python(
class AlternatingOptimizers:
    """Optimizers, by their numbers, whose calls alternate."""

    def __init__(self):
        import collections
        self.calls = collections.OrderedDict()  # by number; the one that was called longest ago stands first
        self.sizes = {}  # how many of them have so many calls, by calls

    def called(self, one):
        before = self.calls.get(one, 0)
        self.calls[one] = before + 1
        self.calls.move_to_end(one)
        self.count(before, -1)
        self.count(before + 1, 1)

    def add(self, later):
        """Adds a group that was called after the last call of this one."""
        self.calls.update(later.calls)
        for calls, size in later.sizes.items():
            self.count(calls, size)

    def count(self, calls, more):
        size = self.sizes.get(calls, 0) + more
        if calls and size:
            self.sizes[calls] = size
        else:
            self.sizes.pop(calls, None)


class OptimizerSteps:
    """Optimizers whose calls alternate make steps together, and a step ends with a call of the one that is called least
    often: a critic may be called five times for each call of its generator. It counts from its first call on, so the
    total falls when it comes late. Optimizers that come when the others are over make steps of their own. The caller
    sees to it that no two threads call at once."""
    RARELY, ONCE = 64, 12  # calls of another optimizer for each of its own from which on one ends no steps
    MOST_GROUPS = 64

    def __init__(self):
        self.numbers = {}  # of optimizers, by id
        self.references = []  # to optimizers, weak, by number
        self.calls = {}  # by number
        self.all_calls = 0
        self.last = {}  # by number: all_calls at its last call
        self.groups = []
        self.over = {}  # by the number of optimizers: steps of groups that are over

    def called(self, optimizer):
        one = self.number_of(optimizer)
        self.calls[one] = self.calls.get(one, 0) + 1
        self.all_calls += 1
        self.last[one] = self.all_calls
        at = next((i for i in reversed(range(len(self.groups))) if one in self.groups[i].calls), None)
        if at is not None:
            for later in self.groups[at + 1:]:
                if any(self.references[other]() is not None for other in later.calls):
                    self.groups[at].add(later)
                else:
                    self.add(later, self.over)
            del self.groups[at + 1:]
            if self.has_ended(self.groups[at], one):
                self.add(self.groups.pop(), self.over)
                self.groups.append(AlternatingOptimizers())
        elif not self.groups or not self.is_first_step(self.groups[-1]):
            self.groups.append(AlternatingOptimizers())
        self.groups[-1].called(one)
        if len(self.groups) > self.MOST_GROUPS:
            self.add(self.groups.pop(0), self.over)

    def has_ended(self, group, one):
        """Returns whether one of the group's optimizers but `one`, which is called now, has not been called for long."""
        oldest = next((other for other in group.calls if other != one), one)
        return self.last[oldest] < self.all_calls - self.RARELY * len(group.calls)

    def is_first_step(self, group):
        """Returns whether the group may be a first step that goes on: it calls one optimizer after the other."""
        return max(group.sizes) == 1 and all(self.references[one]() is not None for one in group.calls)

    def number_of(self, optimizer):
        """Returns a number that no other optimizer has. An id may be used again after an optimizer's death."""
        import weakref
        alive, number = self.numbers.get(id(optimizer), (None, None))
        if alive is None or alive() is not optimizer:
            try:
                alive = weakref.ref(optimizer)
            except TypeError:  # its class has __slots__
                alive = lambda: optimizer
            number = len(self.references)
            self.references.append(alive)
            self.numbers[id(optimizer)] = alive, number
        return number

    def counted(self, group):
        """Returns the calls of those of the group that end steps."""
        most = max(group.sizes)
        return [calls for calls in group.sizes if calls * (self.ONCE if calls == 1 else self.RARELY) >= most]

    def add(self, group, to):
        counted = self.counted(group)
        size = sum(group.sizes[calls] for calls in counted)
        to[size] = to.get(size, 0) + min(counted)

    def by_size(self):
        """Returns how many steps there were, by the number of their optimizers, in the order of the first ones."""
        sums = dict(self.over)
        for group in self.groups:
            self.add(group, sums)
        return sums

    def total(self):
        """Takes no longer if there are more optimizers."""
        return sum(self.over.values()) + sum(min(self.counted(group)) for group in self.groups)
)ullage_python";

}  // namespace ullage
