// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/diagnose.h"

#include "ullage/diagnose/bar.h"
#include "ullage/diagnose/evidence.h"
#include "ullage/diagnose/headline.h"
#include "ullage/diagnose/history.h"
#include "ullage/diagnose/remedies.h"
#include "ullage/diagnose/request_place.h"
#include "ullage/diagnose/rules.h"
#include "ullage/trace/recording/reconstruct.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace ullage::diagnose {
namespace {

const char* layout_name(trace::SnapshotLayout layout) {
  switch (layout) {
    case trace::SnapshotLayout::SegmentList:
      return "list of segments";
    case trace::SnapshotLayout::A:
      return "A";
    case trace::SnapshotLayout::B:
      return "B";
    case trace::SnapshotLayout::C:
      return "C";
    case trace::SnapshotLayout::D:
      return "D";
    case trace::SnapshotLayout::X:
      return "X";
  }
  return "";
}

Diagnosis judge(const Evidence& evidence, Source source) {
  Diagnosis diagnosis;
  diagnosis.tool = spoken(evidence.speaker);
  diagnosis.headline = headline_of(evidence);
  diagnosis.facts = evidence.facts;
  diagnosis.bar = bar_of(evidence);
  diagnosis.causes = causes_of(evidence);
  diagnosis.remedies = remedies_of(evidence, diagnosis.causes);
  diagnosis.notes = notes_of(evidence, diagnosis.causes);
  diagnosis.to_know_more = to_know_more(evidence, diagnosis.causes);
  diagnosis.next = next_command(evidence, source.file);
  diagnosis.source = std::move(source);
  return diagnosis;
}

std::optional<Place> place_of(const trace::OutOfMemory& message) {
  std::vector<const trace::Frame*> frames;
  for (const trace::Frame& frame : message.traceback) frames.push_back(&frame);
  return request_place(frames, trace::Phase::Unknown);
}

// None if no request failed at the moment: the stack of any other event says where a tensor was made or freed.
std::optional<Place> place_of(const History& history) {
  if (!history.failed() || !history.moment.event) return std::nullopt;
  std::vector<const trace::Frame*> frames;
  for (trace::FrameId id : history.stacks->frames(history.trace.events[history.moment.event->value].stack)) {
    frames.push_back(&history.stacks->frame(id));
  }
  return request_place(frames, history.phase);
}

void add_place(Diagnosis& diagnosis, std::optional<Place> place) {
  if (!place) return;
  diagnosis.asked_by = request_in_words(*place);
  diagnosis.place = std::move(place);
}

Diagnosis judge(const History& history, Source source) {
  Diagnosis diagnosis = judge(evidence_of(history), std::move(source));
  add_place(diagnosis, place_of(history));
  diagnosis.devices = history.devices;
  diagnosis.peak = Peak{history.moment.live, history.moment.event, history.owners};
  return diagnosis;
}

// For a snapshot in which no device has a segment or an event.
Diagnosis empty(const trace::Recording& recording, const Question& question) {
  Diagnosis diagnosis;
  diagnosis.source = {"snapshot", question.file, recording.torch, layout_name(recording.layout), 0, 1};
  diagnosis.headline = "the snapshot is empty: no device had memory reserved, and no event was recorded";
  diagnosis.to_know_more = how_to_record();
  diagnosis.notes.push_back("seen when the program ran on the CPU, or when the dump was made before the first tensor");
  diagnosis.next = "ullage help explain";
  return diagnosis;
}

void add_replay(Diagnosis& diagnosis, sim::Replay replay) {
  if (replay.first_difference) {
    diagnosis.notes.push_back(
        fmt::format("the model of the allocator agrees with the recording up to event {}, then: {}; "
                    "simulated figures are the model's",
                    replay.first_difference->event.value, replay.first_difference->what));
  }
  diagnosis.replay = std::move(replay);
}

std::vector<Bytes> peaks_of(const trace::TraceFile& file) {
  std::vector<Bytes> peaks;
  for (const trace::Take& take : file.takes) {
    peaks.push_back(find(take.trace, trace::levels(take.trace), trace::At::Peak)->live);
  }
  return peaks;
}

// Returns the one knob that is lower `then` than `now`, if all others are equal; else none.
std::optional<std::size_t> lower_knob(const std::vector<Knob>& then, const std::vector<Knob>& now) {
  if (then.size() != now.size()) return std::nullopt;
  std::optional<std::size_t> lower;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (then[i].name != now[i].name) return std::nullopt;
    if (then[i].value == now[i].value) continue;
    if (lower || then[i].value > now[i].value) return std::nullopt;
    lower = i;
  }
  return lower;
}

std::optional<SmallerTake> smaller_take(const trace::TraceFile& file, const std::vector<Bytes>& peaks, std::size_t of) {
  std::optional<SmallerTake> next;
  for (std::size_t i = 0; i < file.takes.size(); ++i) {
    const std::optional<std::size_t> knob = lower_knob(file.takes[i].knobs, file.takes[of].knobs);
    if (!knob || peaks[i] >= peaks[of] || (next && peaks[i] <= next->peak)) continue;
    next = SmallerTake{file.takes[i].knobs[*knob], file.takes[of].knobs[*knob], peaks[i]};
  }
  return next;
}

// Returns what each device held. Empty if there is only one.
std::vector<DeviceShare> shares_of(const std::vector<History>& histories) {
  std::vector<DeviceShare> shares;
  if (histories.size() < 2) return shares;
  for (const History& history : histories) {
    DeviceShare share{history.trace.device, history.peak.live, history.reserved_peak, std::nullopt};
    for (const trace::Event& event : history.trace.events) {
      if (const auto* oom = std::get_if<trace::event::OutOfMemory>(&event.what)) share.refused = oom->requested;
    }
    shares.push_back(share);
  }
  return shares;
}

// Returns when the moment's request failed; none if none failed.
std::optional<trace::Microseconds> failed_at(const History& history) {
  if (!history.failed() || !history.moment.event) return std::nullopt;
  return history.trace.events[history.moment.event->value].at.value_or(trace::Microseconds{});
}

bool asked_for(const Question& question, std::optional<unsigned> device) {
  return !question.device || question.device == device;
}

}  // namespace

std::vector<Diagnosis> diagnose(const trace::Recording& recording, const Question& question) {
  std::vector<Diagnosis> diagnoses;
  if (recording.devices.empty() && !question.device) diagnoses.push_back(empty(recording, question));
  std::vector<History> histories;
  std::set<unsigned> without_moment;
  for (const trace::DeviceRecording& recorded : recording.devices) {
    History history;
    history.recording = &recording, history.recorded = &recorded, history.stacks = &recording.stacks;
    history.trace = trace::reconstruct(recorded, recording);
    history.watched = question.watched;
    const bool wanted = work_out(history, question.at);
    // A device without the moment asked for gets no diagnosis, but the others are compared with it.
    if (!wanted && !work_out(history, trace::At::Peak)) continue;
    if (!wanted) without_moment.insert(recorded.device);
    histories.push_back(std::move(history));
  }
  const std::vector<DeviceShare> shares = shares_of(histories);
  std::ranges::stable_sort(histories, [](const History& a, const History& b) {
    const auto a_at = failed_at(a), b_at = failed_at(b);
    return a_at && (!b_at || *a_at > *b_at);
  });
  for (History& history : histories) {
    const unsigned device = history.trace.device;
    if (!asked_for(question, device) || without_moment.contains(device)) continue;
    history.devices = shares;
    Diagnosis diagnosis =
        judge(history, {"snapshot", question.file, recording.torch, layout_name(recording.layout), 0, 1});
    if (!history.recorded->events.empty()) add_replay(diagnosis, sim::replay(*history.recorded, recording));
    for (const std::string& line : recording.inconsistencies) diagnosis.notes.push_back(line);
    diagnoses.push_back(std::move(diagnosis));
  }
  return diagnoses;
}

std::vector<Diagnosis> diagnose(const trace::Log& log, const Question& question) {
  std::vector<Diagnosis> diagnoses;
  for (const trace::OutOfMemory& error : log.errors) {
    if (!asked_for(question, error.device)) continue;
    diagnoses.push_back(judge(evidence_of(error, log),
                              {"message", question.file, error.torch, error.form, error.line, error.repeated}));
    add_place(diagnoses.back(), place_of(error));
  }
  for (const trace::MemorySummary& summary : log.summaries) {
    if (!asked_for(question, summary.device)) continue;
    diagnoses.push_back(
        judge(evidence_of(summary), {"memory_summary", question.file, summary.torch, "", summary.line, 1}));
  }
  return diagnoses;
}

std::vector<Diagnosis> diagnose(const trace::Profile& profile, const Question& question) {
  std::vector<Diagnosis> diagnoses;
  for (const trace::Profile::Device& device : profile.devices) {
    if (!asked_for(question, static_cast<unsigned>(std::max(device.index, 0)))) continue;
    History history;
    history.profiled = &device, history.stacks = &profile.stacks, history.trace = device.trace;
    history.device_is_cpu = device.type == 0;
    if (!work_out(history, question.at)) continue;
    diagnoses.push_back(judge(history, {"kineto", question.file, profile.torch, "", 0, 1}));
    for (const std::string& line : profile.inconsistencies) diagnoses.back().notes.push_back(line);
  }
  return diagnoses;
}

std::vector<Diagnosis> diagnose(const trace::UnderstoodFile& file, const Question& question) {
  std::vector<Diagnosis> diagnoses;
  if (question.device) return diagnoses;
  const std::vector<Bytes> peaks = peaks_of(file.file);
  for (std::size_t i = 0; i < file.file.takes.size(); ++i) {
    const trace::Take& take = file.file.takes[i];
    History history;
    history.file = &file, history.take = &take, history.meaning = &file.meanings[i];
    history.stacks = &file.meanings[i].stacks, history.trace = take.trace;
    history.device_is_cpu = file.file.device == "cpu";
    if (!work_out(history, question.at)) continue;
    history.told->smaller = smaller_take(file.file, peaks, i);
    diagnoses.push_back(judge(history, {"trace", question.file, file.file.torch, "", 0, 1, i, take.knobs}));
    diagnoses.back().place = history.told->place;
    diagnoses.back().saved = Saved{history.told->saved, history.told->saved_by};
  }
  return diagnoses;
}

std::vector<Diagnosis> diagnose(const trace::Input& input, const Question& question) {
  return std::visit([&](const auto& kind) { return diagnose(kind, question); }, input);
}

}  // namespace ullage::diagnose
