// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/input_history.h"

#include "ullage/diagnose/take_facts.h"
#include "ullage/predict/event_text.h"
#include "ullage/trace/meaning/lifetimes.h"
#include "ullage/trace/recording/reconstruct.h"

#include <fmt/format.h>

namespace ullage::report {
namespace {

InputHistory of_device(const trace::Recording& recording, const trace::DeviceRecording& device) {
  InputHistory history;
  history.name = fmt::format("device {}", device.device);
  history.recorded = &device, history.stacks = &recording.stacks;
  history.made = trace::reconstruct(device, recording);
  history.known = understanding_of(*history.made, recording.stacks);
  return history;
}

InputHistory of_device(const trace::Profile& profile, const trace::Profile::Device& device) {
  InputHistory history;
  history.name = device.type == 0 ? device.name : fmt::format("device {} {}", device.index, device.name);
  history.lent = &device.trace, history.stacks = &profile.stacks;
  history.known = understanding_of(device.trace, profile.stacks);
  return history;
}

InputHistory of_take(const trace::UnderstoodFile& file, std::size_t index) {
  const trace::Take& take = file.file.takes[index];
  const trace::TakeMeaning& meaning = file.meanings[index];
  InputHistory history;
  history.name = predict::knobs_text(take.knobs);
  if (history.name.empty()) history.name = fmt::format("{}, take {}", file.file.device, index + 1);
  history.take = &take, history.lent = &take.trace, history.stacks = &meaning.stacks;
  history.known = {meaning.meanings, meaning.categories, meaning.phases, meaning.steps};
  return history;
}

// Returns the device of a diagnosis. A profile's diagnoses are in the order of its devices, of which several may have
// the same number (the CPU has 0 too). With `--device` there is only one diagnosis, whose facts have a device's number;
// the first device with that number is returned.
const trace::Profile::Device* device_of(const std::vector<trace::Profile::Device>& devices,
                                        const diagnose::Diagnosis& diagnosis, std::size_t index, std::size_t count) {
  if (count == devices.size()) return &devices[index];
  for (const trace::Profile::Device& device : devices) {
    if (diagnosis.facts.device && device.index == static_cast<long>(*diagnosis.facts.device)) return &device;
  }
  return nullptr;
}

}  // namespace

Understanding understanding_of(const trace::Trace& trace, const trace::Stacks& stacks) {
  Understanding known;
  known.meanings = trace::meanings(stacks);
  known.phases = trace::phases(trace, known.meanings);
  known.categories = trace::categories(trace, known.meanings, known.phases);
  known.steps = trace::find_steps(trace, known.meanings, known.phases, trace::levels(trace));
  return known;
}

std::optional<InputHistory> history_of(const trace::Input& input, const diagnose::Diagnosis& diagnosis,
                                       std::size_t index, std::size_t count) {
  if (const auto* recording = std::get_if<trace::Recording>(&input)) {
    for (const trace::DeviceRecording& device : recording->devices) {
      if (device.device == diagnosis.facts.device) return of_device(*recording, device);
    }
  } else if (const auto* profile = std::get_if<trace::Profile>(&input)) {
    const auto* device = device_of(profile->devices, diagnosis, index, count);
    if (device != nullptr) return of_device(*profile, *device);
  } else if (const auto* file = std::get_if<trace::UnderstoodFile>(&input)) {
    const std::size_t take = diagnosis.source.take.value_or(index);
    if (take < file->file.takes.size()) return of_take(*file, take);
  }
  return std::nullopt;
}

void each_history(const trace::Input& input, const std::function<void(const InputHistory&)>& visit) {
  if (const auto* recording = std::get_if<trace::Recording>(&input)) {
    for (const auto& device : recording->devices) visit(of_device(*recording, device));
  } else if (const auto* profile = std::get_if<trace::Profile>(&input)) {
    for (const auto& device : profile->devices) visit(of_device(*profile, device));
  } else if (const auto* file = std::get_if<trace::UnderstoodFile>(&input)) {
    for (std::size_t i = 0; i < file->file.takes.size(); ++i) visit(of_take(*file, i));
  }
}

const trace::Stacks* stacks_of(const trace::Input& input, const diagnose::Diagnosis& diagnosis) {
  if (const auto* recording = std::get_if<trace::Recording>(&input)) return &recording->stacks;
  if (const auto* profile = std::get_if<trace::Profile>(&input)) return &profile->stacks;
  if (const auto* file = std::get_if<trace::UnderstoodFile>(&input)) {
    const std::size_t take = diagnosis.source.take.value_or(0);
    if (take < file->meanings.size()) return &file->meanings[take].stacks;
  }
  return nullptr;
}

}  // namespace ullage::report
