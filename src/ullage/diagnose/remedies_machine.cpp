// SPDX-License-Identifier: Apache-2.0

// The remedies outside the allocator's settings and the training code: devices, processes, containers, limits, data
// loading, and searches for a defect. The table at the end says for which causes each is asked, and in which order.
#include "ullage/base/sizes.h"
#include "ullage/diagnose/remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ullage::diagnose {
namespace {

using trace::Teller;

std::optional<Remedy> end_process(const Asked& asked) {
  const Evidence& evidence = asked.evidence;
  if (!evidence.other_processes.empty()) {
    const auto largest = std::max_element(evidence.other_processes.begin(), evidence.other_processes.end(),
                                          [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    return Remedy{"", fmt::format("end process {} if it is not needed: kill {}", largest->pid, largest->pid),
                  largest->bytes, Basis::Computed, "what it holds by this message"};
  }
  Remedy remedy = known("nvidia-smi names the processes on the device: end the one that is not needed (kill PID)");
  if (evidence.others) {
    remedy.saves = evidence.others, remedy.basis = Basis::Computed;
  } else if (evidence.outside && *evidence.outside > 700_MiB) {
    remedy.saves = *evidence.outside - 700_MiB, remedy.basis = Basis::Computed;
    remedy.why = "what is outside PyTorch's pool, less 700 MiB for this program's own CUDA context";
  }
  return remedy;
}

std::optional<Remedy> other_device(const Asked&) {
  return known("choose an empty device: CUDA_VISIBLE_DEVICES=N before the program starts");
}

std::optional<Remedy> lean_context(const Asked& asked) {
  if (asked.evidence.told_by(Teller::Mps)) return std::nullopt;
  return known(
      "CUDA_MODULE_LOADING=LAZY in the environment; no second framework (JAX, TensorFlow) and no desktop on the "
      "same card",
      "kernels are then loaded when first used");
}

std::optional<Remedy> set_device(const Asked&) {
  return known(
      "torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])) first, and torch.load(..., map_location=\"cpu\")",
      "a rank that never chose its device opens a context of 0.3 to 1 GiB on device 0");
}

std::optional<Remedy> distributed(const Asked&) {
  return known(
      "DistributedDataParallel (torchrun) in place of DataParallel; of unequal cards hide the weak one with "
      "CUDA_VISIBLE_DEVICES",
      "DataParallel's batch is limited by its smallest and its first device");
}

std::optional<Remedy> distributed_for(const Asked& asked) {
  const bool several = asked.evidence.signs.has(Sign::DataParallel);
  return several || asked.cause.id != "uneven_devices" ? distributed(asked) : std::nullopt;
}

std::optional<Remedy> even_shares(const Asked& asked) {
  if (asked.evidence.message) {
    return known(
        "move what one rank does alone to the CPU: torch.load(..., map_location=\"cpu\"), gathered outputs and state "
        "dicts (.cpu(), offload_to_cpu=True); torch.cuda.set_device(LOCAL_RANK) before the process group; equal "
        "batches",
        "the fullest rank decides what fits");
  }
  return known(
      "give each device an equal share: equal batches for each replica or rank, device_map=\"balanced\" or max_memory "
      "for a split model, and one device for one process",
      "the fullest device decides what fits");
}

std::optional<Remedy> raise_limit(const Asked& asked) {
  const Evidence& evidence = asked.evidence;
  if (evidence.told_by(Teller::Mps)) {
    return known("PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 in the environment, before torch is imported",
                 "lifts the limit; the machine may start to swap or stall");
  }
  if (evidence.message && !evidence.told_by_pool() && !evidence.told_by(Teller::CudaMallocAsync)) return std::nullopt;
  return Remedy{"", "torch.cuda.set_per_process_memory_fraction(1.0), or find who set it lower in this process",
                difference(evidence.facts.capacity, evidence.facts.allowed), Basis::Computed,
                "what the limit holds back"};
}

// A server that refuses a request at a limit of its own, which is not one of torch's.
std::optional<Remedy> program_limit(const Asked& asked) {
  if (!asked.evidence.message || asked.evidence.message->form != "query-cap") return std::nullopt;
  return known(
      "raise the limit that the server sets itself, or let it evict: Redis maxmemory and maxmemory-policy; Trino "
      "query.max-memory-per-node; Elasticsearch's heap (-Xmx) and indices.breaker.total.limit; PostgreSQL work_mem, "
      "max_locks_per_transaction",
      "the server refuses before the machine does");
}

std::optional<Remedy> close_programs(const Asked& asked) {
  if (asked.evidence.told_by(Teller::Vllm)) {
    return known(
        "free the file cache before the start (echo 3 > /proc/sys/vm/drop_caches) and wait until failed starts "
        "have ended");
  }
  if (asked.evidence.told_by(Teller::Hip)) {
    return known("set what the GPU gets of the memory in the firmware, and take a driver and ROCm that know this APU");
  }
  if (asked.evidence.signs.has(Sign::UnifiedMachine) && !asked.evidence.told_by_pool()) {
    return known(
        "free the file cache (sync; echo 3 > /proc/sys/vm/drop_caches) and compact memory; give the GPU more in the "
        "firmware (BIOS, UMA) or as GTT (amdgpu.gttsize, ttm.pages_limit); a backend that uses all of it (Vulkan)",
        "the GPU's part of the memory is a setting, and caches count against it");
  }
  if (asked.evidence.told_by_pool()) {
    return known(
        "free the file cache (sync; echo 3 > /proc/sys/vm/drop_caches) and end other programs; size by the host's "
        "MemAvailable in place of torch.cuda.mem_get_info()",
        "the device has what the host has left");
  }
  return Remedy{"", "close other programs that use the GPU (browsers, displays)", asked.evidence.other_allocations,
                Basis::Computed, "at most: what others hold"};
}

std::optional<Remedy> no_spilling(const Asked&) {
  return known(
      "NVIDIA control panel, CUDA: Sysmem Fallback Policy: Prefer No Sysmem Fallback; a larger page file if it must "
      "spill",
      "the request then fails at the card's size, and what fits runs at full speed");
}

std::optional<Remedy> lower_utilization(const Asked& asked) {
  const Facts& facts = asked.evidence.facts;
  const double fits = share(facts.free, facts.capacity) - 0.02;
  if (!(fits > 0)) return known("a lower --gpu-memory-utilization");
  Remedy remedy = known(fmt::format("--gpu-memory-utilization {:.2f}", fits), "the share that was free, less 2 %");
  remedy.saves = difference(facts.requested, facts.free), remedy.basis = Basis::Computed;
  return remedy;
}

std::optional<Remedy> more_shared_memory(const Asked&) {
  return known("docker run --shm-size=8g (or --ipc=host); in Kubernetes an emptyDir with medium: Memory at /dev/shm");
}

std::optional<Remedy> more_mappings(const Asked& asked) {
  if (!is_out_of_mappings(asked.evidence)) return std::nullopt;
  return known(
      "sysctl -w vm.max_map_count=1048576; or torch.multiprocessing.set_sharing_strategy(\"file_system\"), or tensors "
      "handed over in fewer pieces",
      "each tensor that a worker hands over is a mapping, and the kernel allows 65530 of them by default");
}

std::optional<Remedy> fewer_workers(const Asked&) {
  return known("DataLoader(num_workers=0), or fewer workers and prefetch_factor=1", "shows at once whether it is that");
}

std::optional<Remedy> less_data(const Asked& asked) {
  if (!asked.evidence.message || asked.evidence.told_by(Teller::CudaDriver)) return std::nullopt;
  return known(
      "less data at once: fewer, shorter or smaller inputs (a lower resolution), read in parts (generators, np.memmap, "
      "streaming=True)",
      "what a program has read is often most of what it holds");
}

std::optional<Remedy> no_pinning(const Asked& asked) {
  if (!asked.evidence.told_by(Teller::CudaDriver)) return std::nullopt;
  return known("DataLoader(pin_memory=False), and smaller pinned buffers (of offload too)",
               "pinned buffers are rounded up to powers of two and cannot be swapped; WSL2 caps them at 1 to 2 GB");
}

std::optional<Remedy> run_in_budget(const Asked& asked) {
  if (asked.evidence.told_by(Teller::CudaDriver) || asked.evidence.told_by(Teller::SharedMemory)) return std::nullopt;
  return known("ullage run --memory auto -- python train.py",
               "for programs on the CPU: tensors over the budget go to disk; for a card see --device cuda (not tried "
               "on a real one yet)");
}

std::optional<Remedy> page_file(const Asked& asked) {
  const std::string form = asked.evidence.message ? asked.evidence.message->form : "";
  if (form != "windows-page-file" && form != "cpu-windows") return std::nullopt;
  return known("System, Advanced, Performance, Virtual memory: a page file of 1.5 to 2 times the machine's memory",
               "Windows promises memory only as far as memory and page file together reach");
}

std::optional<Remedy> sharded_state(const Asked&) {
  return known(
      "FullStateDictConfig(rank0_only=True, offload_to_cpu=True), or SHARDED_STATE_DICT; DeepSpeed: "
      "stage3_gather_16bit_weights_on_model_save false, then zero_to_fp32.py",
      "no card then holds the whole model");
}

std::optional<Remedy> more_budget(const Asked& asked) {
  if (!asked.evidence.message) return std::nullopt;
  const trace::OutOfMemory& message = *asked.evidence.message;
  if (!message.needed) return known("a larger --memory, or --spill to a disk with room");
  return known(fmt::format("ullage run --memory {}MiB ...",
                           round_up(std::min(*message.needed, 1_GiB * 1024 * 1024), 1_MiB).count / (1_MiB).count));
}

std::optional<Remedy> update_driver(const Asked& asked) {
  if (asked.evidence.signs.has(Sign::NoDriver)) {
    return known(
        "restart the machine (of WSL2: Windows itself, not wsl --shutdown alone), then check nvidia-smi; else "
        "another driver");
  }
  if (asked.evidence.told_by(Teller::CudaDriver) && asked.evidence.signs.has(Sign::FreesOnly)) {
    return known("another driver: go back to the version that worked (roll back), or a newer one; restart the program");
  }
  if (asked.evidence.told_by(Teller::Xpu))
    return known(
        "a newer driver and torch, or the driver that worked before (upgrade, downgrade), a newer kernel: some "
        "refuse what the device could hold");
  if (asked.evidence.told_by(Teller::Mps)) {
    return known("device=\"cpu\" there, or a Mac of its own: a virtual machine's Metal device has no memory");
  }
  return known(
      "on Windows a larger page file (it must hold what the device holds); elsewhere retry once, then a newer "
      "driver");
}

// Of the fixes that public threads name for tools that serve a model, about one in ten is another version.
std::optional<Remedy> other_version(const Asked& asked) {
  constexpr std::array kWithout = {Tool::ComfyUi,    Tool::WebUi,   Tool::Mlx,     Tool::Node,
                                   Tool::Java,       Tool::Php,     Tool::Dask,    Tool::DuckDb,
                                   Tool::ClickHouse, Tool::Hosting, Tool::Boosting};
  const Tool tool = asked.evidence.speaker.tool;
  if (!asked.evidence.message || !serves(tool) || std::ranges::find(kWithout, tool) != kWithout.end()) {
    return std::nullopt;
  }
  return known(fmt::format("another version of {}: a newer one (update), or the one before if it ran there",
                           spoken(asked.evidence.speaker)->name),
               "what such a program takes changes from release to release");
}

std::optional<Remedy> find_index_error(const Asked&) {
  return known("CUDA_LAUNCH_BLOCKING=1, or the same batch on the CPU: the true error is then raised where it happens",
               "no memory advice helps here");
}

std::optional<Remedy> smaller_kernel(const Asked&) {
  return known("smaller blocks, or fewer num_stages and num_warps, in the kernel's configs",
               "no setting for the device's memory helps here");
}

std::optional<Remedy> free_disk(const Asked&) {
  return known(
      "df -h, then free the disk that is full, or write elsewhere: TMPDIR for pip and temporary files, "
      "HF_HOME for Hugging Face's caches",
      "no memory advice helps here");
}

std::optional<Remedy> find_size(const Asked&) {
  return known("print the shapes before the call that failed: a size is not initialised or has overflowed",
               "no memory advice helps here");
}

std::optional<Remedy> match_versions(const Asked& asked) {
  if (asked.cause.confidence < 0.1) return std::nullopt;
  return known("python -m torch.utils.collect_env: compare the driver's CUDA version with torch's");
}

constexpr std::array kMachineRemedies = {
    RemedyRule{"end_process", {"other_process", "utilization_share"}, &end_process},
    RemedyRule{"other_device", {"other_process"}, &other_device},
    RemedyRule{"lean_context", {"outside_pool"}, &lean_context},
    RemedyRule{"set_device", {"ranks_on_one_device"}, &set_device},
    RemedyRule{"even_shares", {"uneven_devices"}, &even_shares},
    RemedyRule{"distributed", {"dataparallel_first_card", "uneven_devices"}, &distributed_for},
    RemedyRule{"raise_limit", {"memory_fraction_cap"}, &raise_limit},
    RemedyRule{"program_limit", {"memory_fraction_cap"}, &program_limit},
    RemedyRule{"lower_utilization",
               {"utilization_share", "unified_memory"},
               [](const Asked& asked) -> std::optional<Remedy> {
                 return asked.evidence.told_by(Teller::Vllm) ? lower_utilization(asked) : std::nullopt;
               }},
    RemedyRule{"free_shared_memory", {"unified_memory"}, &close_programs},
    RemedyRule{"no_spilling", {"spilled_to_host"}, &no_spilling},
    RemedyRule{"shm_size", {"shared_memory"}, &more_shared_memory},
    RemedyRule{"more_mappings", {"shared_memory"}, &more_mappings},
    RemedyRule{"page_file", {"host_memory"}, &page_file},
    RemedyRule{"sharded_state", {"full_state_gathered"}, &sharded_state},
    RemedyRule{"fewer_workers", {"shared_memory", "host_memory"}, &fewer_workers},
    RemedyRule{"less_data", {"host_memory"}, &less_data},
    RemedyRule{"no_pinning", {"host_memory"}, &no_pinning},
    RemedyRule{"ullage_run", {"host_memory"}, &run_in_budget},
    RemedyRule{"larger_budget", {"budget_too_small"}, &more_budget},
    RemedyRule{"update_driver",
               {"driver_refused", "buffer_limit"},
               [](const Asked& asked) -> std::optional<Remedy> {
                 return asked.evidence.told_by(Teller::Metal) ? std::nullopt : update_driver(asked);
               }},
    RemedyRule{"launch_blocking", {"index_error_in_disguise"}, &find_index_error},
    RemedyRule{"smaller_kernel", {"not_memory"}, &smaller_kernel},
    RemedyRule{"free_disk", {"disk_full"}, &free_disk},
    RemedyRule{"check_sizes", {"garbage_size"}, &find_size},
    RemedyRule{"match_versions", {"library_mismatch"}, &match_versions},
    RemedyRule{"other_version",
               {"utilization_share", "kv_cache", "private_pools", "driver_refused", "buffer_limit", "device_full",
                "too_big_for_device"},
               &other_version},
};

}  // namespace

std::span<const RemedyRule> machine_remedies() { return kMachineRemedies; }

}  // namespace ullage::diagnose
