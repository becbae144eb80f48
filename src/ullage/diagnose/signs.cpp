// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/signs.h"

#include "ullage/trace/meaning/owner_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace ullage::diagnose {
namespace {

enum class In {
  Name,     // function or file name of the person's own frame, as a whole word ("val" in "val_loop", not in "value")
  Frame,    // file or function of any frame, anywhere in it
  Code,     // a line of source
  Line,     // a printed line, as a whole word
  Phrase,   // a printed line, anywhere
  Below,    // as Phrase, and also in the lines below the error, where the caller that got no bytes reports it
  Setting,  // as Below: "name value" with any of " :=\"'" between the two, so "fp16 true" is in "--fp16=True"
};

struct Word {
  Sign sign;
  In in;
  std::string_view text;  // lower case
};

constexpr Word kWords[] = {
    {Sign::Evaluation, In::Name, "val"},
    {Sign::Evaluation, In::Name, "valid"},
    {Sign::Evaluation, In::Name, "validate"},
    {Sign::Evaluation, In::Name, "validation"},
    {Sign::Evaluation, In::Name, "eval"},
    {Sign::Evaluation, In::Name, "evaluate"},
    {Sign::Evaluation, In::Name, "evaluation"},
    {Sign::Evaluation, In::Name, "inference"},
    {Sign::Evaluation, In::Frame, "evaluation_loop"},
    {Sign::Evaluation, In::Frame, "prediction_step"},
    {Sign::Evaluation, In::Phrase, "trainer.evaluate("},
    {Sign::Evaluation, In::Line, "validation"},
    {Sign::Evaluation, In::Line, "validating"},
    {Sign::Evaluation, In::Line, "evaluating"},
    {Sign::Evaluation, In::Line, "evaluation"},
    {Sign::OptimizerStep, In::Frame, "torch/optim/"},
    {Sign::OptimizerStep, In::Frame, "optimizer.step"},
    {Sign::OptimizerStep, In::Code, "optimizer.step("},
    {Sign::OptimizerStep, In::Code, "optim.step("},
    {Sign::Backward, In::Frame, "torch/autograd/__init__.py"},
    {Sign::Backward, In::Frame, "autograd::engine"},
    {Sign::Backward, In::Code, ".backward("},
    {Sign::Loading, In::Frame, "torch/serialization.py"},
    {Sign::Loading, In::Frame, "load_state_dict"},
    {Sign::Loading, In::Frame, "from_pretrained"},
    {Sign::Loading, In::Frame, "safetensors"},
    {Sign::Loading, In::Code, "torch.load("},
    {Sign::Loading, In::Code, "load_state_dict("},
    {Sign::Loading, In::Code, "from_pretrained("},
    {Sign::Loading, In::Phrase, "resuming"},
    {Sign::Loading, In::Phrase, "resumed from"},
    {Sign::Loading, In::Phrase, "loading checkpoint"},
    {Sign::Loading, In::Phrase, "loaded checkpoint"},
    {Sign::Deserializing, In::Frame, "_cuda_deserialize"},
    {Sign::Deserializing, In::Frame, "default_restore_location"},
    {Sign::Deserializing, In::Code, "restore_location("},
    {Sign::Deserializing, In::Frame, "safetensors/torch.py"},
    {Sign::Deserializing, In::Frame, "safetensors\\torch.py"},
    {Sign::Loss, In::Frame, "cross_entropy"},
    {Sign::Loss, In::Frame, "log_softmax"},
    {Sign::Loss, In::Frame, "lm_head"},
    {Sign::Loss, In::Frame, "logits_processor"},  // of vLLM and SGLang
    {Sign::Loss, In::Frame, "compute_logits"},
    {Sign::Loss, In::Frame, "loss_utils"},
    {Sign::Loss, In::Frame, "convert_to_fp32"},  // of a model's outputs, the logits
    {Sign::Loss, In::Phrase, "in _convert_to_fp32("},
    {Sign::Loss, In::Code, "cross_entropy("},
    {Sign::Loss, In::Code, "log_softmax("},
    {Sign::Loss, In::Code, "logits.float("},
    {Sign::Loss, In::Code, "lm_head("},
    {Sign::Attention, In::Frame, "attention"},
    {Sign::Attention, In::Frame, "attn"},
    {Sign::Attention, In::Code, "q @ k"},
    {Sign::Attention, In::Code, "attn"},
    {Sign::Attention, In::Code, "attention"},
    {Sign::Attention, In::Code, "scores = torch.matmul"},
    {Sign::Attention, In::Code, "scores = torch.bmm"},
    {Sign::Attention, In::Code, "scores = torch.einsum"},
    {Sign::Attention, In::Code, "scores = q"},
    {Sign::Attention, In::Code, "softmax(scores"},
    {Sign::Attention, In::Code, "scores.softmax"},
    {Sign::Generation, In::Frame, "generation/utils.py"},
    {Sign::Generation, In::Name, "generate"},
    {Sign::Generation, In::Code, ".generate("},
    {Sign::CacheBuffer, In::Below, "buffer for kv cache"},
    {Sign::CacheBuffer, In::Below, "kv_cache_init() failed"},
    {Sign::CacheBuffer, In::Below, "kv-cache buffer"},
    {Sign::Gathering, In::Frame, "nested_concat"},
    {Sign::Gathering, In::Frame, "trainer_pt_utils"},
    {Sign::DataParallel, In::Frame, "parallel/data_parallel.py"},
    {Sign::DataParallel, In::Frame, "parallel/scatter_gather.py"},
    {Sign::DataParallel, In::Frame, "parallel/replicate.py"},
    {Sign::DataParallel, In::Frame, "parallel/parallel_apply.py"},
    {Sign::Distributed, In::Frame, "parallel/distributed.py"},
    {Sign::Distributed, In::Frame, "distributed_c10d"},
    {Sign::Distributed, In::Frame, "multiprocessing/spawn.py"},
    {Sign::Distributed, In::Line, "torchrun"},
    {Sign::PinnedMemory, In::Frame, "pin_memory"},
    {Sign::PinnedMemory, In::Code, "pin_memory"},
    {Sign::PinnedMemory, In::Phrase, "page-lock"},
    {Sign::LoaderWorker, In::Phrase, "dataloader worker"},
    {Sign::LoaderWorker, In::Frame, "data/_utils/worker.py"},
    {Sign::Installing, In::Line, "could not install packages"},
    {Sign::Installing, In::Frame, "/pip/_"},
    {Sign::Moving, In::Code, ".to(device"},
    {Sign::Moving, In::Code, ".cuda("},
    {Sign::Moving, In::Code, ".to('cuda"},
    {Sign::Moving, In::Code, ".to(\"cuda"},
    // As whole words, so that "to enable device-side assertions" does not match: torch adds it to every CUDA error.
    {Sign::DeviceAssert, In::Line, "device-side assert"},
    {Sign::DeviceAssert, In::Line, "device-side assertion"},
    {Sign::DeviceAssert, In::Phrase, "srcindex < srcselectdimsize"},
    {Sign::DeviceAssert, In::Phrase, "index out of bounds"},
    {Sign::DeviceAssert, In::Phrase, "t >= 0 && t < n_classes"},
    {Sign::DeviceAssert, In::Phrase, "indexselectlargeindex"},
    {Sign::RetainGraph, In::Code, "retain_graph=true"},
    {Sign::RetainGraph, In::Code, "create_graph=true"},
    {Sign::GraphCapture, In::Frame, "cuda/graphs.py"},
    {Sign::GraphCapture, In::Frame, "capture_model"},
    {Sign::GraphCapture, In::Frame, "cuda_graph_runner"},
    {Sign::GraphCapture, In::Phrase, "capturing cuda graph"},
    {Sign::GraphCapture, In::Phrase, "cuda graph capture"},
    {Sign::GraphCapture, In::Phrase, "capture cuda graph"},
    {Sign::ReplayBuffer, In::Frame, "replay_buffer"},
    {Sign::ReplayBuffer, In::Frame, "replaybuffer"},
    {Sign::ReplayBuffer, In::Frame, "replay_memory"},
    {Sign::ReplayBuffer, In::Line, "replay buffer"},
    {Sign::ReplayBuffer, In::Line, "replaybuffer"},
    {Sign::Environments, In::Frame, "stable_baselines3"},
    {Sign::Environments, In::Frame, "rsl_rl"},
    {Sign::Environments, In::Frame, "rl_games"},
    {Sign::Environments, In::Frame, "skrl"},
    {Sign::Environments, In::Frame, "torchrl"},
    {Sign::Environments, In::Frame, "cleanrl"},
    {Sign::Environments, In::Line, "num_envs"},
    {Sign::Environments, In::Line, "env_name"},
    {Sign::Environments, In::Line, "gymnasium"},
    {Sign::Lora, In::Frame, "/peft/"},
    {Sign::Lora, In::Frame, "lora"},
    {Sign::Lora, In::Line, "lora"},
    {Sign::Lora, In::Line, "qlora"},
    {Sign::Saving, In::Frame, "save_checkpoint"},
    {Sign::Saving, In::Frame, "save_pretrained"},
    {Sign::Saving, In::Frame, "state_dict_saver"},
    {Sign::Saving, In::Code, "torch.save("},
    {Sign::Saving, In::Phrase, "saving checkpoint"},
    {Sign::Saving, In::Phrase, "saving model checkpoint"},
    {Sign::Saving, In::Phrase, "saving the checkpoint"},
    {Sign::Saving, In::Phrase, "saving the model"},
    {Sign::Saving, In::Phrase, "save_checkpoint"},
    {Sign::Saving, In::Phrase, "save_ckpt"},
    {Sign::Saving, In::Phrase, "save checkpoint"},
    // In Chinese: "saves the" ckpt, checkpoint, model, weights
    {Sign::Saving, In::Phrase,
     "\xe4\xbf\x9d\xe5\xad\x98"
     "ckpt"},
    {Sign::Saving, In::Phrase,
     "\xe4\xbf\x9d\xe5\xad\x98"
     "checkpoint"},
    {Sign::Saving, In::Phrase, "\xe4\xbf\x9d\xe5\xad\x98\xe6\xa8\xa1\xe5\x9e\x8b"},
    {Sign::Saving, In::Phrase, "\xe4\xbf\x9d\xe5\xad\x98\xe6\x9d\x83\xe9\x87\x8d"},
    {Sign::FullState, In::Frame, "_full_pre_state_dict_hook"},
    {Sign::FullState, In::Frame, "_full_post_state_dict_hook"},
    {Sign::FullState, In::Frame, "_unflatten_optim_state"},
    {Sign::FullState, In::Frame, "_gather_state_dict"},
    {Sign::FullState, In::Frame, "_zero3_consolidated"},
    {Sign::FullState, In::Code, "full_state_dict"},
    {Sign::FullState, In::Code, ".full_tensor("},
    {Sign::FullState, In::Code, "gather_object("},
    {Sign::Growing, In::Below, "memory leak"},
    {Sign::Growing, In::Below, "vram leak"},
    {Sign::Growing, In::Below, "not being released"},
    {Sign::Growing, In::Below, "not released"},
    {Sign::Growing, In::Below, "is never released"},
    {Sign::Growing, In::Below, "keeps increasing"},
    {Sign::Growing, In::Below, "keep increasing"},
    {Sign::Growing, In::Below, "keeps growing"},
    {Sign::Growing, In::Below, "keeps on growing"},
    {Sign::Growing, In::Below, "continuously increas"},
    {Sign::Growing, In::Below, "gradually increas"},
    {Sign::Growing, In::Below, "steadily increas"},
    {Sign::Growing, In::Below, "constantly increas"},
    {Sign::Growing, In::Below, "slowly increas"},
    {Sign::Growing, In::Below, "linearly increas"},
    {Sign::Growing, In::Below, "steadily grow"},
    {Sign::Growing, In::Below, "constantly grow"},
    {Sign::Growing, In::Below, "slowly grow"},
    {Sign::Growing, In::Below, "keeps rising"},
    {Sign::Growing, In::Below, "keeps climbing"},
    {Sign::Growing, In::Below, "keeps going up"},
    {Sign::Growing, In::Below, "increases linearly"},
    {Sign::Growing, In::Below, "grows linearly"},
    {Sign::Growing, In::Below, "increases steadily"},
    {Sign::Growing, In::Below, "grows steadily"},
    {Sign::Growing, In::Below, "increases every"},
    {Sign::Growing, In::Below, "increases after each"},
    {Sign::Growing, In::Below, "grows after each"},
    {Sign::Growing, In::Below, "never freed"},
    {Sign::Growing, In::Below, "not freed"},
    {Sign::Growing, In::Below, "not being freed"},
    {Sign::Growing, In::Below, "increases over time"},
    {Sign::Growing, In::Below, "grows over time"},
    {Sign::Growing, In::Below, "grows with each"},
    {Sign::Growing, In::Below, "increases with each"},
    // In Chinese: is not released; grows on, more and more; after some time of training
    {Sign::Growing, In::Below, "\xe6\xb2\xa1\xe6\x9c\x89\xe8\xa2\xab\xe9\x87\x8a\xe6\x94\xbe"},
    {Sign::Growing, In::Below, "\xe6\xb2\xa1\xe6\x9c\x89\xe9\x87\x8a\xe6\x94\xbe"},
    {Sign::Growing, In::Below, "\xe4\xb8\x8d\xe9\x87\x8a\xe6\x94\xbe"},
    {Sign::Growing, In::Below, "\xe4\xb8\x80\xe7\x9b\xb4\xe5\x9c\xa8\xe9\x80\x92\xe5\xa2\x9e"},
    {Sign::Growing, In::Below, "\xe4\xb8\x80\xe7\x9b\xb4\xe5\x9c\xa8\xe5\xa2\x9e"},
    {Sign::Growing, In::Below, "\xe4\xb8\x8d\xe6\x96\xad\xe5\xa2\x9e"},
    {Sign::Growing, In::Below, "\xe6\x8c\x81\xe7\xbb\xad\xe5\xa2\x9e\xe9\x95\xbf"},
    {Sign::Growing, In::Below, "\xe9\x80\x90\xe6\xb8\x90\xe5\xa2\x9e"},
    {Sign::Growing, In::Below, "\xe8\xb6\x8a\xe6\x9d\xa5\xe8\xb6\x8a\xe5\xa4\xa7"},
    {Sign::Growing, In::Below, "\xe8\xae\xad\xe7\xbb\x83\xe4\xb8\x80\xe6\xae\xb5\xe6\x97\xb6\xe9\x97\xb4\xe5\x90\x8e"},
    {Sign::Autocast, In::Frame, "amp/autocast_mode.py"},
    {Sign::Autocast, In::Frame, "amp\\autocast_mode.py"},
    {Sign::Autocast, In::Code, "autocast("},
    {Sign::UnifiedMachine, In::Below, "dgx spark"},
    {Sign::UnifiedMachine, In::Below, "gb10"},
    {Sign::UnifiedMachine, In::Below, "jetson"},
    {Sign::UnifiedMachine, In::Below, "strix halo"},
    {Sign::UnifiedMachine, In::Below, "ryzen ai"},
    {Sign::UnifiedMachine, In::Below, "radeon 8060s"},
    {Sign::UnifiedMachine, In::Below, "radeon 890m"},
    {Sign::UnifiedMachine, In::Below, "radeon 780m"},
    {Sign::UnifiedMachine, In::Below, "gfx1151"},
    {Sign::UnifiedMachine, In::Below, "gfx1150"},
    {Sign::UnifiedMachine, In::Below, "gfx1103"},
    {Sign::UnifiedMachine, In::Below, "gttsize"},
    {Sign::UnifiedMachine, In::Below, "unified memory"},
    {Sign::UnifiedMachine, In::Below, "mem_info_vram_total"},
    {Sign::NoDriver, In::Below, "failed to initialize nvml"},
    {Sign::NoDriver, In::Below, "is_available() = false"},
    {Sign::NoDriver, In::Below, "no cuda-capable device"},
    {Sign::NoDriver, In::Below, "couldn't communicate with the nvidia driver"},
    {Sign::NoDriver, In::Below, "dxgkio_"},
    {Sign::NoDriver, In::Below, "has fallen off the bus"},
    {Sign::FreesOnly, In::Frame, "empty_cache"},
    {Sign::FreesOnly, In::Frame, "emptycache"},
    {Sign::FreesOnly, In::Code, "_cuda_emptycache("},
    {Sign::FreesOnly, In::Phrase, "cuda.reclaim()"},  // CUDA.jl
    {Sign::DeepCopy, In::Code, "deepcopy("},
    {Sign::DeepCopy, In::Frame, "deepcopy"},
    {Sign::DeepCopy, In::Below, "deepcopy("},
    {Sign::Inference, In::Line, "inference"},
    {Sign::Inference, In::Line, "infer"},
    {Sign::Inference, In::Line, "predict"},
    {Sign::Inference, In::Line, "demo"},
    {Sign::Inference, In::Line, "generate"},
    {Sign::Inference, In::Name, "inference"},
    {Sign::Inference, In::Name, "infer"},
    {Sign::Inference, In::Name, "predict"},
    {Sign::Inference, In::Name, "demo"},
    {Sign::Inference, In::Name, "generate"},
    {Sign::Training, In::Line, "train"},
    {Sign::Training, In::Line, "training"},
    {Sign::Training, In::Line, "finetune"},
    {Sign::Training, In::Line, "finetuning"},
    {Sign::Training, In::Line, "fine-tune"},
    {Sign::Training, In::Line, "fine-tuning"},
    {Sign::Training, In::Name, "train"},
    {Sign::Training, In::Name, "trainer"},
    {Sign::Training, In::Name, "training"},
    {Sign::Training, In::Name, "finetune"},
    {Sign::Training, In::Frame, "training_step"},
    {Sign::WeightsMove, In::Code, "module._apply("},
    {Sign::WeightsMove, In::Code, "self._apply(lambda t"},
    {Sign::WeightsMove, In::Code, "param_applied = fn(param)"},
    {Sign::WeightsMove, In::Code, "model.cuda("},
    {Sign::WeightsMove, In::Code, "model.to("},
    {Sign::WeightsMove, In::Code, ".eval().cuda("},
    {Sign::WeightsMove, In::Code, ".eval().to("},
    {Sign::WeightsMove, In::Phrase, "module._apply("},
    {Sign::WeightsMove, In::Phrase, "model.cuda("},
    {Sign::WeightsMove, In::Phrase, "model.to("},
    {Sign::WeightsMove, In::Phrase, ".eval().cuda("},
    {Sign::WeightsMove, In::Phrase, ".eval().to("},
    {Sign::NoGrad, In::Frame, "torch/utils/_contextlib.py"},
    {Sign::NoGrad, In::Frame, "torch\\utils\\_contextlib.py"},
    {Sign::NoGrad, In::Frame, "torch/autograd/grad_mode.py"},
    {Sign::NoGrad, In::Code, "no_grad("},
    {Sign::NoGrad, In::Code, "inference_mode("},
    {Sign::Checkpoints, In::Frame, "torch/utils/checkpoint.py"},
    {Sign::Checkpoints, In::Frame, "torch\\utils\\checkpoint.py"},
    {Sign::Checkpoints, In::Below, "gradient_checkpointing_enable("},
    {Sign::Checkpoints, In::Below, "--gradient_checkpointing -"},
    {Sign::Checkpoints, In::Below, "--gradient_checkpointing \\"},
    {Sign::Checkpoints, In::Setting, "gradient_checkpointing true"},
    {Sign::HalfPrecision, In::Setting, "mixed_precision fp16"},
    {Sign::HalfPrecision, In::Setting, "mixed_precision bf16"},
    {Sign::HalfPrecision, In::Setting, "fp16 true"},
    {Sign::HalfPrecision, In::Setting, "bf16 true"},
    {Sign::EightBit, In::Below, "8bit_adam"},
    {Sign::EightBit, In::Below, "adamw8bit"},
    {Sign::EightBit, In::Below, "adamw_8bit"},
    {Sign::EightBit, In::Below, "adamw_bnb_8bit"},
    {Sign::BatchOfOne, In::Setting, "batch_size 1"},
    {Sign::BatchOfOne, In::Setting, "batch size 1"},
    {Sign::BatchOfOne, In::Setting, "batchsize 1"},
    {Sign::BatchOfOne, In::Setting, "batch size of 1"},
    {Sign::Windows, In::Frame, ":\\"},
    {Sign::Windows, In::Phrase, ":\\"},
};

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Returns whether `word` stands in `text` with no letter directly before or after it.
bool holds_word(std::string_view text, std::string_view word) {
  const auto letter = [&](std::size_t at) {
    return at < text.size() && std::isalpha(static_cast<unsigned char>(text[at]));
  };
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !letter(at - 1)) && !letter(at + word.size())) return true;
  }
  return false;
}

std::string_view last_component(std::string_view path) {
  const std::size_t slash = path.find_last_of("/\\");
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Returns whether a function that generates makes a picture or sound: it keeps no keys and values of tokens.
bool makes_media(std::string_view function) {
  constexpr std::string_view kMedia[] = {"video", "image", "picture", "audio", "music", "mesh"};
  return std::ranges::any_of(kMedia, [&](std::string_view word) { return holds(function, word); });
}

// Returns the number after a word such as "epoch" in a printed line; none if the word or the number is missing.
std::optional<std::uint64_t> number_after(std::string_view line, std::string_view word) {
  std::size_t at = line.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  at += word.size();
  while (at < line.size() && holds(" :=#[(", line.substr(at, 1))) ++at;
  if (at >= line.size() || !std::isdigit(static_cast<unsigned char>(line[at]))) return std::nullopt;
  std::uint64_t number = 0;
  for (; at < line.size() && std::isdigit(static_cast<unsigned char>(line[at])) && number < 1'000'000'000; ++at) {
    number = number * 10 + static_cast<std::uint64_t>(line[at] - '0');
  }
  return number;
}

// Returns whether the text gives a setting its value. `setting` is "name value".
bool states(std::string_view text, std::string_view setting) {
  const std::size_t space = setting.rfind(' ');
  const std::string_view name = setting.substr(0, space), value = setting.substr(space + 1);
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    std::size_t from = at + name.size();
    while (from < text.size() && holds(" :=\"'", text.substr(from, 1))) ++from;
    const std::string_view rest = text.substr(from);
    const auto goes_on = [&](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.'; };
    if (rest.starts_with(value) && (rest.size() == value.size() || !goes_on(rest[value.size()]))) return true;
  }
  return false;
}

// People write below a message at which point the error occurs: "I always encounter this error during the evaluation
// phase".
bool says_when_it_failed(std::string_view text) {
  const auto any = [&](auto... parts) { return (holds(text, parts) || ...); };
  const bool of_it = any("this error", "the error", "out of memory", "crash") || holds_word(text, "oom");
  return of_it && any(" during ", " while ", " when ");
}

// Returns whether a printed line is one of source, such as a traceback's last one: "x = F.softmax(", "return f(x)". A
// logger's or a progress bar's line has other letters before its bracket.
bool is_source(std::string_view line) {
  while (line.ends_with(' ')) line.remove_suffix(1);
  while (line.starts_with(' ')) line.remove_prefix(1);
  const std::size_t open = line.find('(');
  if (open == line.npos || open == 0 || !(line.ends_with('(') || line.ends_with(')') || line.ends_with(','))) {
    return false;
  }
  std::string_view before = line.substr(0, open);
  if (before.starts_with("return ")) before.remove_prefix(7);
  if (const std::size_t equal = before.find(" = "); equal != before.npos) before.remove_prefix(equal + 3);
  const auto of_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; };
  return !before.empty() && std::ranges::all_of(before, of_name);
}

std::string shortened(std::string_view line) {
  constexpr std::size_t kLongest = 80;
  return line.size() <= kLongest ? std::string(line) : std::string(line.substr(0, kLongest)) + "...";
}

}  // namespace

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string place(const trace::Frame& frame) {
  if (frame.file == "??" || frame.file.empty()) return frame.function;
  std::string_view file = frame.file;
  const std::size_t slash = file.find_last_of("/\\");
  if (slash != std::string_view::npos && slash > 0) {
    const std::size_t before = file.find_last_of("/\\", slash - 1);
    if (before != std::string_view::npos) file = file.substr(before + 1);
  }
  return fmt::format("{}:{} {}", file, frame.line, frame.function);
}

void Signs::set(Sign sign, std::string words) {
  std::string& seen = seen_[static_cast<std::size_t>(sign)];
  if (seen.empty()) seen = std::move(words);
}

void Signs::look_at_frame(const trace::Frame& frame, std::string_view code) {
  const std::string file = lower(frame.file);
  const std::string function = lower(frame.function);
  const std::string source = lower(code);
  const bool own = trace::is_own(frame);
  for (const Word& word : kWords) {
    switch (word.in) {
      case In::Name:
        if (word.sign == Sign::Generation && makes_media(function)) break;
        if (own && (holds_word(function, word.text) || holds_word(last_component(file), word.text))) {
          set(word.sign, place(frame));
        }
        break;
      case In::Frame:
        if (holds(file, word.text) || holds(function, word.text)) set(word.sign, place(frame));
        break;
      case In::Code:
        if (holds(source, word.text)) set(word.sign, fmt::format("{}: {}", place(frame), shortened(code)));
        break;
      case In::Line:
      case In::Phrase:
      case In::Below:
      case In::Setting:
        break;
    }
  }
}

void Signs::look_at_line(std::string_view line) {
  const std::string text = lower(line);
  for (const Word& word : kWords) {
    const bool anywhere = word.in == In::Phrase || word.in == In::Below;
    const bool found = word.in == In::Line      ? holds_word(text, word.text)
                       : word.in == In::Setting ? states(text, word.text)
                                                : anywhere && holds(text, word.text);
    if (found) set(word.sign, shortened(line));
  }
  const std::optional<std::uint64_t> epoch = number_after(text, "epoch");
  std::optional<std::uint64_t> step = number_after(text, "step");
  if (!step) step = number_after(text, "iter");
  if (step ? *step <= 1 && epoch.value_or(0) <= 1 : epoch && *epoch == 0 && holds(text, " 0/")) {
    set(Sign::FirstStep, shortened(line));
  }
  if ((step && *step >= 20) || (epoch && *epoch >= 2)) set(Sign::LaterStep, shortened(line));
}

void Signs::look_at_source(std::string_view line) {
  const std::string text = lower(line);
  if (!is_source(text)) return;
  for (const Word& word : kWords) {
    // from_pretrained() in a script reads the model itself, and no second copy beside it.
    if (word.in == In::Code && word.sign != Sign::Loading && holds(text, word.text)) set(word.sign, shortened(line));
  }
}

void Signs::look_below(std::string_view line) {
  const std::string text = lower(line);
  if (says_when_it_failed(text)) look_at_line(line);
  for (const Word& word : kWords) {
    const bool found =
        word.in == In::Setting ? states(text, word.text) : word.in == In::Below && holds(text, word.text);
    if (found) set(word.sign, shortened(line));
  }
}

Signs signs_of(const trace::OutOfMemory& message) {
  Signs signs;
  for (std::size_t i = 0; i < message.traceback.size(); ++i) {
    signs.look_at_frame(message.traceback[i], i < message.code.size() ? message.code[i] : std::string_view());
  }
  // The newest line is searched first, because it is nearest to the error and the first hit is kept.
  // It may be the last line of a traceback whose other lines were not pasted.
  if (message.traceback.empty() && !message.before.empty()) signs.look_at_source(message.before.back());
  for (std::size_t i = message.before.size(); i-- > 0;) signs.look_at_line(message.before[i]);
  signs.look_at_line(message.text);
  for (const std::string& line : message.after) signs.look_below(line);
  // A traceback below the error: a frame's line, then its code.
  for (std::size_t i = 0; i < message.after.size(); ++i) {
    const std::string_view line = message.after[i];
    if (!line.starts_with("File \"")) continue;
    const bool has_code = i + 1 < message.after.size() && !message.after[i + 1].starts_with("File \"");
    const std::size_t name_end = line.find('"', 6);
    const std::size_t in = line.rfind(" in ");
    signs.look_at_frame({std::string(line.substr(6, name_end == line.npos ? line.npos : name_end - 6)),
                         in == line.npos ? "" : std::string(line.substr(in + 4)), 0},
                        has_code ? std::string_view(message.after[i + 1]) : std::string_view());
  }
  return signs;
}

Signs signs_of(const trace::Stacks& stacks, trace::StackId stack) {
  Signs signs;
  for (trace::FrameId id : stacks.frames(stack)) signs.look_at_frame(stacks.frame(id), {});
  return signs;
}

}  // namespace ullage::diagnose
