// SPDX-License-Identifier: Apache-2.0

// The remedies that change the person's own program, and a few for what it runs on (a larger device, more host memory).
// A table says for which causes each is asked, and in which order. A function returns nothing if its remedy does not
// apply. Edit this to add or reword an advice, or to change the order. docs/explain.md lists every id.
#include "ullage/base/sizes.h"
#include "ullage/diagnose/remedies.h"
#include "ullage/diagnose/saving.h"
#include "ullage/diagnose/take_words.h"

#include <fmt/format.h>

#include <algorithm>

namespace ullage::diagnose {
namespace {

using trace::Category;
using trace::Teller;

// Returns a remedy that saves `saves`. Below 1 MiB it has no figure, and counts as known only.
Remedy computed(std::string action, Bytes saves, std::string why = "") {
  if (saves < 1_MiB) return known(std::move(action), std::move(why));
  return {"", std::move(action), saves, Basis::Computed, std::move(why)};
}

bool on_host(const Evidence& evidence) {
  return evidence.told_by(Teller::Cpu) || evidence.told_by(Teller::KernelKill) ||
         evidence.told_by(Teller::SharedMemory);
}

const char* device_type(const Evidence& evidence) {
  if (evidence.told_by(Teller::Mps) || evidence.told_by(Teller::Metal)) return "mps";
  if (evidence.told_by(Teller::Xpu)) return "xpu";
  if (evidence.told_by(Teller::Npu)) return "npu";
  return evidence.history && evidence.history->device_is_cpu ? "cpu" : "cuda";
}

bool not_torch(const Evidence& evidence) {
  return evidence.told_by(Teller::Jax) || evidence.told_by(Teller::TensorFlow);
}

// Proposes the smaller size that another take of the same file ran with. The saving is the difference of the two
// recorded peaks.
std::optional<Remedy> as_recorded(const History& history) {
  if (!history.told || !history.told->smaller) return std::nullopt;
  const SmallerTake& smaller = *history.told->smaller;
  return computed(fmt::format("{}={} in place of {}", smaller.then.name, smaller.then.value, smaller.now.value),
                  saturating_sub(history.peak.live, smaller.peak),
                  fmt::format("another take of this file ran so: its peak is {} in place of {}",
                              to_string(smaller.peak), to_string(history.peak.live)));
}

std::optional<Remedy> smaller_batch(const Asked& asked) {
  const Evidence& evidence = asked.evidence;
  // A refusal by Ullage names the budget that would have served, and larger_budget proposes that.
  if (evidence.told_by(Teller::Ullage)) return std::nullopt;
  if (evidence.history) {
    if (std::optional<Remedy> recorded = as_recorded(*evidence.history)) return recorded;
    if (evidence.history->of(Category::Activations) < 1_MiB) return std::nullopt;
    const bool trains = evidence.history->roles.trains;
    return computed(trains ? "halve the batch, with gradient accumulation over two" : "halve the batch",
                    saving(*evidence.history, Category::Activations, {1, 2}),
                    trains ? "activations are proportional to the batch; BatchNorm sees the smaller one"
                           : "activations are proportional to the batch");
  }
  if (evidence.summary) return known("a smaller batch");
  const std::optional<Bytes> over =
      difference(sum(evidence.facts.allocated, evidence.facts.requested), evidence.ceiling);
  std::string why = "what grows with the batch cannot be told from a message; try half first";
  if (over) why = fmt::format("at least {} must go; try half first", to_string(*over));
  if (only_infers(evidence)) return known("a smaller batch (batch size): fewer samples at once", std::move(why));
  return known("a smaller batch (batch size), with gradient accumulation to keep its effect", std::move(why));
}

std::optional<Remedy> checkpointing(const Asked& asked) {
  const Evidence& evidence = asked.evidence;
  const bool trains = evidence.history && (evidence.history->roles.trains || asked.cause.id == "graph_kept");
  if (evidence.history && (!trains || evidence.history->of(Category::Activations) < 1_MiB)) {
    return std::nullopt;
  }
  if (on_host(evidence) || not_torch(evidence)) return std::nullopt;
  std::string why = "costs about one more forward pass";
  if (evidence.history) {
    why += fmt::format("; saves less than the {} of activations, because the inputs of the blocks are kept",
                       to_string(evidence.history->of(Category::Activations)));
  }
  return known("torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) around each block", std::move(why));
}

std::optional<Remedy> half_precision(const Asked& asked) {
  if (on_host(asked.evidence) || not_torch(asked.evidence)) return std::nullopt;
  const bool already =
      asked.evidence.history ? asked.evidence.history->autocast : asked.evidence.signs.has(Sign::Autocast);
  if (already) return std::nullopt;
  return known(fmt::format("with torch.autocast(\"{}\", dtype=torch.bfloat16): around the forward pass",
                           device_type(asked.evidence)),
               "about half of the activations if they are fp32 now; the result differs in its last digits");
}

std::optional<Remedy> larger_device(const Asked& asked) {
  const Facts& facts = asked.evidence.facts;
  const std::optional<Bytes> tensors = sum(facts.allocated, facts.requested);
  // If the bytes outside the pool are not known, those of a CUDA context and libraries are assumed.
  const std::optional<Bytes> least = sum(tensors, asked.evidence.outside.value_or(600_MiB));
  if (!facts.capacity || !least || *least <= *facts.capacity || facts.requested >= 1_GiB * 1024) return std::nullopt;
  return known(fmt::format("a device with more than {}", to_string(*least)),
               "what was live, this request and what is outside the pool; the rest of the step comes on top");
}

// smaller_input and smaller_model are for a batch of one that does not fit. They are proposed for a message only. A
// recording shows which tensors are large, and the remedies for these say more exactly what to do.
std::optional<Remedy> smaller_input(const Asked& asked) {
  if (!asked.evidence.message || on_host(asked.evidence)) return std::nullopt;
  return known(
      "a smaller input: shorter sequences (max_length), a lower resolution, crops or tiles, fewer frames or points",
      "activations grow with it, attention scores with its square");
}

std::optional<Remedy> smaller_model(const Asked& asked) {
  if (!asked.evidence.message || on_host(asked.evidence)) return std::nullopt;
  return known(
      "smaller weights: a quantized (8 or 4 bit, fp8) or smaller model, LoRA or QLoRA in place of full training; CPU "
      "offload (device_map=\"auto\"), or several devices (FSDP, ZeRO 3, tensor parallel)",
      "where the model itself does not fit");
}

std::optional<Remedy> sharded_checkpoint(const Asked& asked) {
  const Signs& signs = asked.evidence.signs;
  if (!signs.has(Sign::Saving) && !signs.has(Sign::Loading)) return std::nullopt;
  return known(
      "write and read checkpoints in shards (torch.distributed.checkpoint), one rank after the other; torch.load(..., "
      "mmap=True), low_cpu_mem_usage=True",
      "else each rank holds a whole copy on the host");
}

std::optional<Remedy> more_host_memory(const Asked& asked) {
  if (!asked.evidence.message || asked.evidence.told_by(Teller::CudaDriver)) return std::nullopt;
  return known("more RAM, swap or page file, or a higher memory limit of the container or job; fewer programs at once");
}

std::optional<Remedy> split_request(const Asked& asked) {
  if (asked.cause.id == "buffer_limit") {
    return known(
        "split the operation: chunks, tiles or fewer samples, each below the limit of one block (Arc: 4 GiB, "
        "WSL2: about 1 GiB, Metal: torch.mps.recommended_max_memory() is an upper bound)");
  }
  return known(
      "find the call in the traceback and split it: tiles, patches, chunks, fewer samples, frames or a lower "
      "resolution; or run that call on the CPU",
      "no cleaning up makes room for one request of that size");
}

std::optional<Remedy> no_grad(const Asked& asked) {
  const History* history = asked.evidence.history;
  const char* action = history && history->file && !is_python(history->file->file)
                           ? "torch::NoGradGuard no_grad; at the head of the evaluation"
                           : "with torch.no_grad(): (or torch.inference_mode()) around the whole evaluation";
  if (!asked.evidence.history) {
    // A server or a UI computes without a graph. A person's own program may have forgotten no_grad.
    const bool of_evaluation = asked.cause.id == "validation_with_graph" || asked.cause.id == "graph_kept";
    if (!of_evaluation && (!only_infers(asked.evidence) || serves(asked.evidence.speaker.tool))) return std::nullopt;
    return known(action, "model.eval() alone does not stop autograd from keeping the graph");
  }
  if (asked.cause.id == "graph_kept") {
    return computed(action, saving(*asked.evidence.history, Category::Activations), "at most: all activations");
  }
  return computed(action, saving(*asked.evidence.history, Role::Evaluation), "at most: what the evaluation keeps");
}

Bytes grown(const Evidence& evidence) {
  Bytes total;
  for (const trace::Growth& growth : evidence.history->growth) total = sum(total, growth.total).value_or(total);
  return std::min(total, evidence.history->moment.live);
}

std::optional<Remedy> detach(const Asked& asked) {
  const char* action =
      "add up numbers, not tensors: total += loss.item(); keep x.detach(), not x; detach a hidden state "
      "between batches";
  if (!asked.evidence.history) return known(action);
  return computed(action, grown(asked.evidence), "what the steps have left behind so far");
}

std::optional<Remedy> drop_graph(const Asked& asked) {
  if (!asked.evidence.signs.has(Sign::RetainGraph)) return std::nullopt;
  return known("leave out retain_graph=True: one backward over the sum of the losses");
}

std::optional<Remedy> outputs_to_host(const Asked& asked) {
  const Evidence& evidence = asked.evidence;
  if (evidence.signs.has(Sign::Gathering)) {
    return known("TrainingArguments(eval_accumulation_steps=10), or preprocess_logits_for_metrics that returns labels");
  }
  if (on_host(evidence))
    return known("reduce predictions batch by batch (metrics, labels), do not keep them to the end");
  const char* action = "keep outputs.detach().cpu(), or reduce them at once";
  if (evidence.history) return computed(action, grown(evidence));
  return known(std::string(action) +
               " (transformers: eval_accumulation_steps=10, preprocess_logits_for_metrics that returns "
               "logits.argmax(-1))");
}

std::optional<Remedy> eight_bit_optimizer(const Asked& asked) {
  if (asked.evidence.history && asked.evidence.history->device_is_cpu) return std::nullopt;
  const char* action = "bitsandbytes.optim.AdamW8bit in place of AdamW";
  const char* why = "the two moments in one byte each in place of four; the result differs";
  if (!asked.evidence.history) return known(action, why);
  return computed(action, saving(*asked.evidence.history, Category::OptimizerState, {3, 4}), why);
}

std::optional<Remedy> plain_optimizer(const Asked& asked) {
  const char* action = "SGD without momentum, which has no state, or Adafactor, which has little";
  if (!asked.evidence.history) return known(action, "another optimizer trains differently");
  return computed(action, saving(*asked.evidence.history, Category::OptimizerState),
                  "another optimizer trains differently");
}

std::optional<Remedy> foreach_off(const Asked& asked) {
  const char* action = "torch.optim.AdamW(..., foreach=False), or fused=True";
  if (!asked.evidence.history) return known(action, "saves temporaries of the size of all parameters, at some speed");
  const History& history = *asked.evidence.history;
  if (asked.cause.id == "optimizer_temporaries") {
    return computed(action, saving(history, Role::Foreach), "the lists of its temporaries");
  }
  if (history.phase != trace::Phase::Optimizer || !history.roles.foreach) return std::nullopt;
  return computed(action, std::min(history.of(Category::Parameters), saving(history, Category::Temporaries)),
                  "temporaries of the size of the parameters");
}

std::optional<Remedy> chunk_loss(const Asked& asked) {
  const char* action =
      "compute head and loss in chunks of the sequence (liger_kernel's fused linear cross entropy, "
      "torchtune's chunked loss)";
  if (asked.cause.id == "activations") {
    if (asked.evidence.history) return std::nullopt;
    return known(action, "where a large vocabulary makes the loss: its gradients come first in the backward pass");
  }
  if (!asked.evidence.history) return known(action, "and do not cast all logits to fp32 at once");
  return computed(action, saving(*asked.evidence.history, Role::Logits, {7, 8}), "in 8 chunks");
}

std::optional<Remedy> fused_attention(const Asked& asked) {
  if (asked.cause.id == "single_request_too_big") {
    // A request larger than the whole device is most often a matrix of attention scores. If there is a traceback, it
    // must end in attention.
    const Evidence& evidence = asked.evidence;
    const bool open = evidence.message && evidence.message->traceback.empty() && evidence.told_by_pool();
    if (!open && !evidence.signs.has(Sign::Attention)) return std::nullopt;
  }
  const char* action =
      "torch.nn.functional.scaled_dot_product_attention(q, k, v) (transformers: attn_implementation=\"sdpa\")";
  const char* why = "never makes the whole matrix of scores: memory grows with the length, not with its square";
  return computed(action, asked.evidence.history ? saving(*asked.evidence.history, Role::AttentionScores) : Bytes{},
                  why);
}

std::optional<Remedy> load_to_host(const Asked&) {
  return known(
      "torch.load(path, map_location=\"cpu\", mmap=True), then load_state_dict; safetensors: load_file(path, "
      "device=\"cpu\") or f\"cuda:{torch.cuda.current_device()}\"",
      "safetensors takes a bare \"cuda\" as device 0 in every rank");
}

std::optional<Remedy> smaller_replay(const Asked& asked) {
  const Signs& signs = asked.evidence.signs;
  if (!asked.evidence.message || (!signs.has(Sign::Environments) && !signs.has(Sign::ReplayBuffer))) {
    return std::nullopt;
  }
  return known(
      "a smaller replay buffer (buffer_size), or one on the host in a smaller dtype (uint8, float16); fewer parallel "
      "environments (num_envs)",
      "the buffer's bytes are its steps x environments x the size of an observation");
}

std::optional<Remedy> drop_checkpoint(const Asked& asked) {
  const char* action = "checkpoint = torch.load(path, map_location=\"cpu\"), and del checkpoint after load_state_dict";
  if (!asked.evidence.history)
    return known(action, "else a second copy of the weights and of the optimizer's state stays");
  return computed(action, saving(*asked.evidence.history, Role::LoadedAgain), "the second copy");
}

std::optional<Remedy> less_cache(const Asked&) {
  return known("fewer sequences at once or a smaller max_new_tokens; use_cache=False while training",
               "keys and values grow with batch x length");
}

std::optional<Remedy> smaller_weights(const Asked& asked) {
  const bool of_weights = asked.cause.id == "model_weights";
  if (!of_weights && !only_infers(asked.evidence) && !moves_weights(asked.evidence)) return std::nullopt;
  const Bytes weights =
      asked.evidence.history ? saving(*asked.evidence.history, Category::Parameters, {1, 2}) : Bytes{};
  return computed("load the weights in half precision: model.to(torch.bfloat16)", weights,
                  "if they are fp32 now; the result differs");
}

std::optional<Remedy> data_on_host(const Asked& asked) {
  const Bytes inputs = asked.evidence.history ? saving(*asked.evidence.history, Category::Inputs) : Bytes{};
  return computed("keep the data on the host and move one batch at a time to the device", inputs);
}

std::optional<Remedy> no_weight_copies(const Asked& asked) {
  return computed(
      "keep the weights themselves in half precision (model.to(torch.bfloat16), with fp32 master weights in the "
      "optimizer); where nothing trains, torch.autocast(..., cache_enabled=False)",
      saving(*asked.evidence.history, Category::WeightCopies), "this avoids the second copy");
}

// Only gradients of an earlier step can be freed. If they exceed the parameters by more than 16 MiB, they were not
// recognised correctly.
std::optional<Remedy> free_gradients(const Asked& asked) {
  if (!asked.evidence.history) return std::nullopt;
  const History& history = *asked.evidence.history;
  const Bytes old = saving(history, Role::OldGradient);
  if (old < 1_MiB || old > history.of(Category::Parameters) + 16_MiB) return std::nullopt;
  return computed("optimizer.zero_grad(set_to_none=True) right after the step, before the next forward pass", old,
                  "gradients of the step before stand beside the activations");
}

std::optional<Remedy> bucket_views(const Asked&) {
  return known("DistributedDataParallel(..., gradient_as_bucket_view=True)", "where these are DDP's buckets");
}

std::optional<Remedy> warm_up_compiler(const Asked&) {
  return known("compile with one small batch first, or torch.compile(mode=\"default\")",
               "the trials of max-autotune allocate beside the program's own tensors");
}

// Remedies of one cause are proposed in this order. For a full device it is mostly the order of what worked in public
// threads with a known fix (tests/data/messages: the open half of each file, the one that people have read). For 29 of
// these threads `ullage explain` proposed smaller_batch, and in 8 of the 29 threads that was the fix. smaller_input was
// the fix in 14 of 67, smaller_model in 10 of 56, half_precision in 1 of 29, gradient_checkpointing in none of 29. One
// thread of 29 does not decide an order, so checkpointing, which keeps the results, stands before half precision.
constexpr std::array kProgramRemedies = {
    RemedyRule{"no_grad", {"validation_with_graph", "graph_kept", "device_full", "too_big_for_device"}, &no_grad},
    RemedyRule{"detach", {"leak_across_steps", "many_kept"}, &detach},
    RemedyRule{"drop_retain_graph", {"leak_across_steps"}, &drop_graph},
    RemedyRule{"outputs_to_host", {"outputs_kept"}, &outputs_to_host},
    RemedyRule{"foreach_false", {"optimizer_temporaries", "optimizer_state"}, &foreach_off},
    RemedyRule{"eight_bit_optimizer", {"optimizer_state"}, &eight_bit_optimizer},
    RemedyRule{"plain_optimizer", {"optimizer_state"}, &plain_optimizer},
    RemedyRule{"load_to_host", {"loaded_to_device"}, &load_to_host},
    RemedyRule{"drop_checkpoint", {"checkpoint_loaded_twice", "loaded_to_device"}, &drop_checkpoint},
    RemedyRule{"chunked_loss", {"logits", "activations"}, &chunk_loss},
    RemedyRule{"fused_attention", {"attention_matrix", "single_request_too_big"}, &fused_attention},
    RemedyRule{
        "smaller_replay", {"device_full", "too_big_for_device", "data_on_device", "outside_pool"}, &smaller_replay},
    RemedyRule{"less_cache", {"kv_cache"}, &less_cache},
    RemedyRule{"split_request", {"single_request_too_big", "buffer_limit"}, &split_request},
    RemedyRule{"smaller_batch",
               {"device_full", "too_big_for_device", "activations", "logits", "temporaries", "late_library_handle",
                "workspace", "budget_too_small", "spilled_to_host"},
               &smaller_batch},
    RemedyRule{"smaller_input",
               {"device_full", "too_big_for_device", "single_request_too_big", "activations", "attention_matrix",
                "logits", "temporaries", "spilled_to_host"},
               &smaller_input},
    RemedyRule{"half_precision_weights", {"model_weights", "device_full", "too_big_for_device"}, &smaller_weights},
    RemedyRule{
        "smaller_model", {"model_weights", "device_full", "too_big_for_device", "spilled_to_host"}, &smaller_model},
    RemedyRule{"gradient_checkpointing",
               {"device_full", "too_big_for_device", "activations", "spilled_to_host", "graph_kept"},
               &checkpointing},
    RemedyRule{
        "half_precision", {"device_full", "too_big_for_device", "activations", "spilled_to_host"}, &half_precision},
    RemedyRule{"sharded_checkpoint", {"host_memory"}, &sharded_checkpoint},
    RemedyRule{"more_host_memory", {"host_memory"}, &more_host_memory},
    RemedyRule{"free_gradients", {"gradients"}, &free_gradients},
    RemedyRule{"warm_up_compiler", {"compiler"}, &warm_up_compiler},
    RemedyRule{"bucket_views", {"library_buffers"}, &bucket_views},
    RemedyRule{"no_weight_copies", {"weight_copies"}, &no_weight_copies},
    RemedyRule{"data_on_host", {"data_on_device", "many_kept"}, &data_on_host},
    RemedyRule{"larger_device",
               {"model_weights", "device_full", "too_big_for_device", "single_request_too_big"},
               &larger_device},
};

}  // namespace

std::span<const RemedyRule> program_remedies() { return kProgramRemedies; }

}  // namespace ullage::diagnose
