// SPDX-License-Identifier: Apache-2.0

// The settings of tools that serve or run a model, and of trainers of diffusion models, by the names that the tools
// use. To add one, write a row; its id must be new (tests/diagnose/tools_test.cpp). tools.h says what a row has.
#include "ullage/diagnose/tools.h"

namespace ullage::diagnose {
namespace {

using For = ToolAdvice::For;

constexpr ToolAdvice kServingAdvice[] = {
    {Tool::Vllm, "vllm_max_model_len", For::Device, "--max-model-len N (max_model_len): a shorter longest sequence",
     "one request of that length must fit into the KV cache; where the message names an estimated maximum, take that"},
    {Tool::Vllm, "vllm_utilization", For::Device,
     "--gpu-memory-utilization (gpu_memory_utilization): higher where the KV cache does not fit, lower where anything "
     "else fails (CUDA graphs, sampling, another process; for RL vllm_gpu_memory_util)",
     "it is the share of the card that the engine takes as a whole"},
    {Tool::Vllm, "vllm_sequences", For::Device,
     "--max-num-seqs N, --max-num-batched-tokens N: fewer at once; prompt_logprobs off",
     "activations and the logits of a step grow with them"},
    {Tool::Vllm,
     "vllm_logprobs",
     For::Any,
     "no prompt_logprobs, a smaller --max-logprobs and --max-num-batched-tokens",
     "the logits of all tokens of a step are else made in one piece",
     {"logits"}},
    {Tool::Vllm, "vllm_eager", For::Device, "--enforce-eager, or fewer sizes: no CUDA graphs",
     "captured graphs take 1 to 3 GiB beside the KV cache"},
    {Tool::Vllm, "vllm_smaller", For::Device,
     "--kv-cache-dtype fp8, a quantized model (--quantization fp8), --cpu-offload-gb N, or --tensor-parallel-size N "
     "over "
     "several cards; for pictures --limit-mm-per-prompt and fewer max_pixels",
     ""},
    {Tool::Vllm, "vllm_host", For::Host,
     "--swap-space 0, --max-parallel-loading-workers 1, docker run --shm-size=16g (or --ipc=host), more RAM or swap",
     "each worker stages its part of the weights on the host"},
    {Tool::Sglang, "sglang_mem_fraction", For::Device,
     "--mem-fraction-static: lower (0.8, 0.7) where activations or CUDA graphs fail, higher where the KV cache is too "
     "small",
     "it is the share for weights and KV cache alone"},
    {Tool::Sglang, "sglang_chunk", For::Device,
     "--chunked-prefill-size 2048, --max-running-requests N, --cuda-graph-max-bs N (or --disable-cuda-graph, "
     "--disable-piecewise-cuda-graph), --context-length N, --kv-cache-dtype fp8_e5m2",
     ""},
    {Tool::Sglang, "sglang_parallel", For::Device,
     "--tp N (tensor parallel over several cards), a quantized model, or CPU offload (--cpu-offload-gb N, "
     "--dit-cpu-offload)",
     ""},
    {Tool::Sglang,
     "sglang_logprobs",
     For::Any,
     "SGLANG_ENABLE_LOGITS_PROCESSER_CHUNK=1; log-probabilities of fewer input tokens (logprob_start_len)",
     "the logits of all tokens of a prefill are else made in one piece",
     {"logits"}},
    {Tool::Sglang, "sglang_host", For::Host,
     "a lower --hicache-ratio, docker run --shm-size=32g (or --ipc=host), more RAM; one rank that loads at a time", ""},
    {Tool::Tgi, "tgi_tokens", For::Device,
     "--max-batch-total-tokens N (or a lower --cuda-memory-fraction), --max-batch-prefill-tokens N, --max-input-tokens "
     "N, --max-total-tokens N, --max-concurrent-requests N; for embeddings --max-batch-tokens N",
     "the launcher else fits the batch to all that a short trial left free"},
    {Tool::Tgi, "tgi_smaller", For::Device,
     "--quantize (eetq, awq, fp8), --num-shard N over several cards, --cuda-graphs 0, a smaller model", ""},
    {Tool::Lmdeploy, "lmdeploy_cache", For::Device,
     "TurbomindEngineConfig(cache_max_entry_count=0.2) (--cache-max-entry-count): a smaller share for the KV cache",
     "by default the engine takes 80 % of what is free for the KV cache (50 % up to version 0.2)"},
    {Tool::Lmdeploy, "lmdeploy_smaller", For::Device,
     "session_len (--session-len), max_batch_size, quant_policy=8 (KV cache in int8), an AWQ model, tp=N", ""},
    {Tool::TensorRtLlm, "trtllm_engine", For::Device,
     "build the engine with a smaller --max_batch_size, --max_num_tokens, --max_input_len and --max_seq_len",
     "the engine's buffers are made for the largest of each"},
    {Tool::TensorRtLlm, "trtllm_cache", For::Device,
     "kv_cache_free_gpu_mem_fraction (kv_cache_config.free_gpu_memory_fraction): lower; one instance "
     "(instance_group count 1); a quantized engine; --tp_size N",
     "the KV cache takes 90 % of what is free after loading"},
    {Tool::ExLlama, "exllama_cache", For::Device,
     "cache_size and max_seq_len: smaller; cache_mode Q4 or Q6; a lower bpw", ""},
    {Tool::ExLlama, "exllama_split", For::Device,
     "gpu_split or autosplit_reserve (room on each card), chunk_size 512; cpu_moe_offload_layers: more expert layers "
     "on "
     "the CPU",
     ""},
    {Tool::KoboldCpp, "koboldcpp_layers", For::Device,
     "--gpulayers N: fewer layers on the card; --contextsize N; --lowvram (the KV cache stays off the card); "
     "--flashattention with --quantkv 1; --blasbatchsize 256",
     ""},
    {Tool::Whisper, "whisper_smaller", For::Device,
     "compute_type=\"int8\" or \"int8_float16\", a smaller model (medium, turbo), batch_size=1, --device cpu", ""},
    {Tool::Whisper, "whisper_one", For::Any,
     "one job at a time, in chunks of the recording; del model, gc.collect() and torch.cuda.empty_cache() before the "
     "next model (alignment, diarization) is loaded",
     ""},
    {Tool::SdScripts, "sdtrain_lean", For::Device,
     "gradient_checkpointing, batch size 1 with gradient_accumulation_steps, mixed_precision bf16 (full_bf16), an "
     "8-bit "
     "optimizer (AdamW8bit, Adafactor), fp8_base or quantized base weights",
     ""},
    {Tool::SdScripts, "sdtrain_swap", For::Device,
     "blocks_to_swap N (block swap), cache_latents and cache_text_encoder_outputs, LoRA in place of full training, the "
     "unet only, a smaller rank",
     "text encoder and VAE then need not stand on the card"},
    {Tool::SdScripts, "sdtrain_validation", For::Device,
     "offload what does not train while validation pictures or checkpoints are made (offload_during_save, "
     "--lowvram), fewer or smaller samples",
     ""},
    {Tool::SdScripts, "sdtrain_host", For::Host,
     "fewer loader workers, latents cached to disk (cache_latents_to_disk), a larger page file or swap", ""},
    {Tool::WebUi, "webui_offload", For::Device,
     "--medvram or --lowvram (--always-low-vram), a lower GPU weight slider (more inference memory reserved), CPU "
     "offload; other models unloaded first",
     "weights and working memory share the card"},
    {Tool::WebUi, "webui_smaller", For::Device,
     "a smaller picture, fewer frames, batch 1; tiled VAE (tiled decoding); --xformers or sdp attention; fp8, GGUF or "
     "nf4 weights",
     ""},
    {Tool::WebUi, "webui_working", For::Device,
     "InvokeAI: device_working_mem_gb higher, max_cache_vram_gb lower; Wan2GP: a leaner memory profile; Forge: "
     "forge_inference_memory higher",
     ""},
    {Tool::WebUi, "webui_host", For::Host,
     "a larger page file or swap (RAM and page file together 64 GB for large models), fewer models cached in RAM, "
     "no pinned memory; mmgp (Wan2GP): a smaller perc_reserved_mem_max or another profile",
     "models that leave the card stay in the machine's memory"},
    {Tool::WebUi, "webui_update", For::Any, "update the program and its driver, or go back to what ran before", ""},
    {Tool::IsaacSim, "isaac_envs", For::Device, "fewer parallel environments (num_envs, --num_envs), --headless",
     "each environment has its own share of the simulator's buffers"},
    {Tool::IsaacSim, "isaac_buffers", For::Device,
     "smaller PhysX buffers (gpu_max_rigid_contact_count, gpu_found_lost_pairs_capacity); simulator and learner on two "
     "cards",
     "the simulator's memory is outside PyTorch's pool"},
    {Tool::StableDiffusionCpp, "sdcpp_tiling", For::Device,
     "--vae-tiling (LocalAI: vae_tiling) with smaller tiles (--vae-tile-size), or --taesd for a small decoder",
     "decoding a whole picture at once wants the largest buffer of all"},
    {Tool::StableDiffusionCpp, "sdcpp_offload", For::Device,
     "--offload-to-cpu, --clip-on-cpu, --vae-on-cpu: weights that are not at work leave the card", ""},
    {Tool::StableDiffusionCpp, "sdcpp_smaller", For::Any,
     "a smaller picture (-W, -H) or fewer frames, --diffusion-fa, a smaller quantization (--type q8_0, q4_0, or a "
     "GGUF)",
     ""},
    {Tool::LlamaCpp, "llama_layers", For::Device,
     "-ngl N (--n-gpu-layers): fewer layers on the card, the rest on the CPU; of a mixture --n-cpu-moe N (-ot "
     "exps=CPU); --no-mmproj-offload",
     ""},
    {Tool::LlamaCpp, "llama_context", For::Any,
     "-c N (--ctx-size): a shorter context; -np 1; -fa with -ctk q8_0 -ctv q8_0 for a smaller KV cache", ""},
    {Tool::LlamaCpp, "llama_batch", For::Device,
     "-ub 256 -b 512 (--ubatch-size): smaller compute buffers; --no-warmup; for several cards a build with "
     "-DGGML_SCHED_MAX_COPIES=1",
     "on several cards pipeline parallelism holds four copies of the compute buffers"},
    {Tool::LlamaCpp, "llama_buffer", For::Device,
     "where one buffer is too large: UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1 (SYCL, above 4 GB), "
     "GGML_VK_FORCE_MAX_ALLOCATION_SIZE (Vulkan), --split-mode row or --tensor-split",
     "drivers limit one allocation, however much is free"},
    {Tool::LlamaCpp, "llama_quantization", For::Any, "a smaller quantization (Q4_K_M, IQ4_XS) or a smaller model", ""},
    {Tool::LlamaCpp,
     "llama_table",
     For::Any,
     "a newer version; a smaller picture or batch, --vae-tiling or --taesd where it makes pictures",
     "the table of tensors has a size that the program states; the device may have plenty",
     {"memory_fraction_cap"}},
    {Tool::LlamaCpp, "llama_host", For::Host,
     "GGML_CUDA_NO_PINNED=1 where pinned memory fails; mmap left on (no --no-mmap, no --mlock); --cache-ram 0",
     "pinned memory is limited, by WSL2 to a part of the machine's"},
    {Tool::Ollama, "ollama_host", For::Host,
     "a smaller model or quantization, or more memory: of the machine, or of the container or VM (Docker Desktop's "
     "setting, docker run --memory)",
     "it compares what the model needs with what the system says is available"},
    {Tool::Ollama, "ollama_available", For::Host,
     "update Ollama; in a container (LXC, Docker) free the page cache: sync; echo 3 > /proc/sys/vm/drop_caches",
     "older versions count the page cache as used there"},
    {Tool::Ollama, "ollama_context", For::Any,
     "a shorter context: num_ctx or OLLAMA_CONTEXT_LENGTH; OLLAMA_NUM_PARALLEL=1, OLLAMA_MAX_LOADED_MODELS=1", ""},
    {Tool::Ollama, "ollama_cache", For::Device, "OLLAMA_FLASH_ATTENTION=1 with OLLAMA_KV_CACHE_TYPE=q8_0", ""},
    {Tool::Ollama, "ollama_layers", For::Device,
     "num_gpu N: fewer layers on the card; OLLAMA_GPU_OVERHEAD for a margin; other models stopped first (ollama stop, "
     "OLLAMA_KEEP_ALIVE=0)",
     ""},
    {Tool::ComfyUi, "comfyui_offload", For::Device,
     "--lowvram (or --novram), --reserve-vram N; CPU offload in the loader node; unload models between the stages", ""},
    {Tool::ComfyUi, "comfyui_tiled", For::Device, "VAE Decode (Tiled) in place of VAE Decode", ""},
    {Tool::ComfyUi, "comfyui_smaller", For::Any,
     "fp8 or GGUF weights; a lower resolution, fewer frames, batch 1; fewer LoRAs; fewer blocks kept, more to swap",
     ""},
    {Tool::ComfyUi,
     "comfyui_pinned",
     For::Any,
     "--disable-pinned-memory, --disable-async-offload",
     "what leaves the card is pinned, and the driver then refuses with the words of a full card",
     {"host_memory", "driver_refused"}},
    {Tool::ComfyUi, "comfyui_host", For::Host,
     "more RAM or a larger swap or page file; --disable-pinned-memory, --cache-none; models on a disk that is fast",
     "models that leave the card stay in the machine's memory"},
    {Tool::ComfyUi, "comfyui_allocator", For::Device,
     "--disable-cuda-malloc (PyTorch's own pool) and --disable-smart-memory (models leave the card at once)",
     "cudaMallocAsync does not fall back to the machine's memory as the driver may on Windows"},
    {Tool::ComfyUi, "comfyui_update", For::Any, "update ComfyUI, its nodes and the driver",
     "its memory manager changed with almost every release"},
    {Tool::Diffusers, "diffusers_offload", For::Any,
     "pipe.enable_model_cpu_offload() (or enable_sequential_cpu_offload(), or group offloading)", ""},
    {Tool::Diffusers, "diffusers_tiling", For::Device, "pipe.vae.enable_tiling() and pipe.vae.enable_slicing()", ""},
    {Tool::Diffusers, "diffusers_smaller", For::Any,
     "half precision (torch_dtype=torch.bfloat16) or quantized weights, fewer frames, a lower resolution, "
     "num_images_per_prompt=1",
     ""},
    {Tool::Mlx, "mlx_prompt", For::Any,
     "a shorter prompt or smaller prefill chunks (--prefill-step-size 512, --max-num-batched-tokens), a quantized KV "
     "cache",
     "attention over a long prompt makes one large buffer"},
    {Tool::Mlx, "mlx_cache", For::Any,
     "mx.set_cache_limit(N) and mx.clear_cache(); MLX_MAX_MB_PER_BUFFER for shorter command buffers", ""},
    {Tool::Mlx, "mlx_wired", For::Any, "sudo sysctl iogpu.wired_limit_mb=N; close other programs; a smaller model",
     "macOS gives the GPU two thirds to three quarters of the memory"},
    {Tool::Mlx, "mlx_update", For::Any, "upgrade mlx and what is built on it", "several releases fixed such errors"},
};

}  // namespace

std::span<const ToolAdvice> serving_advice() { return kServingAdvice; }
std::array<std::span<const ToolAdvice>, 2> tool_advice() { return {serving_advice(), framework_advice()}; }

}  // namespace ullage::diagnose
