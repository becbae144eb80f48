// SPDX-License-Identifier: Apache-2.0
#pragma once

// A vector that is indexed by one kind of id. Each array has its own kind of id, so the index needs no cast, and an
// index of another array does not compile:
//
//   using SlotIndex = Id<struct SlotTag, std::int32_t>;
//   Table<SlotIndex, Slot> slots;
//   for (const SlotIndex slot : slots.ids()) use(slots[slot]);
//
// Ids count the items from zero. As in a vector, operator[] does not check the index, and at() throws
// std::out_of_range.

#include "ullage/base/ids.h"

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace ullage {

// Consecutive ids [from, until). `from` is never above `until`.
template <class Index>
struct IdRange {
  Index from{};
  Index until{};

  template <int kStep>
  struct Walk {
    using difference_type = std::ptrdiff_t;
    using value_type = Index;
    Index at{};
    constexpr Index operator*() const { return at; }
    constexpr Walk& operator++() {
      at = kStep > 0 ? at.next() : at.previous();
      return *this;
    }
    constexpr Walk operator++(int) { return std::exchange(*this, {kStep > 0 ? at.next() : at.previous()}); }
    friend constexpr bool operator==(Walk, Walk) = default;
  };
  struct Backwards {
    Index from, until;
    constexpr Walk<-1> begin() const { return {until.previous()}; }
    constexpr Walk<-1> end() const { return {from.previous()}; }
  };
  constexpr Walk<1> begin() const { return {from}; }
  constexpr Walk<1> end() const { return {until}; }
  constexpr Backwards backwards() const { return {from, until}; }
  constexpr bool empty() const { return from == until; }
  constexpr std::size_t size() const { return static_cast<std::size_t>(until.value - from.value); }
};

template <class Index, class T>
class Table final {
  using Items = std::vector<T>;

 public:
  using value_type = T;
  using iterator = typename Items::iterator;
  using const_iterator = typename Items::const_iterator;

  Table() = default;
  explicit Table(std::size_t count) : items_(count) {}
  Table(std::size_t count, const T& value) : items_(count, value) {}
  Table(std::initializer_list<T> items) : items_(items) {}
  explicit Table(Items items) : items_(std::move(items)) {}

  typename Items::reference operator[](Index index) { return items_[place(index)]; }
  typename Items::const_reference operator[](Index index) const { return items_[place(index)]; }
  std::span<const T> operator[](IdRange<Index> range) const {
    return {items_.data() + place(range.from), range.size()};
  }

  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  bool has(Index index) const { return place(index) < items_.size(); }  // false for a negative index too
  Index next_id() const { return id_at(items_.size()); }                // of the item that push_back() adds next
  IdRange<Index> ids() const { return {id_at(0), next_id()}; }
  Index id_of(const_iterator at) const { return id_at(static_cast<std::size_t>(at - items_.begin())); }

  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  typename Items::const_reference at(Index index) const { return items_.at(place(index)); }
  typename Items::reference at(Index index) { return items_.at(place(index)); }
  typename Items::reference front() { return items_.front(); }
  typename Items::reference back() { return items_.back(); }
  typename Items::const_reference front() const { return items_.front(); }
  typename Items::const_reference back() const { return items_.back(); }

  Index push_back(T item) {
    items_.push_back(std::move(item));
    return id_at(items_.size() - 1);
  }
  template <class... Args>
  typename Items::reference emplace_back(Args&&... args) {
    return items_.emplace_back(std::forward<Args>(args)...);
  }
  void pop_back() { items_.pop_back(); }
  void erase(iterator from, iterator until) { items_.erase(from, until); }
  void clear() { items_.clear(); }
  void reserve(std::size_t count) { items_.reserve(count); }
  void resize(std::size_t count) { items_.resize(count); }
  void assign(std::size_t count, const T& value) { items_.assign(count, value); }

  friend bool operator==(const Table&, const Table&) = default;

 private:
  static constexpr std::size_t place(Index index) { return static_cast<std::size_t>(index.value); }
  static constexpr Index id_at(std::size_t place) { return {static_cast<decltype(Index::value)>(place)}; }

  Items items_;
};

}  // namespace ullage
