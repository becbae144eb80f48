// SPDX-License-Identifier: Apache-2.0

// What to set in frameworks, trainers, data engines and machines, by the names that they use themselves. Programs that
// serve or run a model are in tool_advice.cpp. Edit a row if a tool renames a setting. tools.h says what a row has.
#include "ullage/diagnose/tools.h"

namespace ullage::diagnose {
namespace {

using For = ToolAdvice::For;

constexpr ToolAdvice kFrameworkAdvice[] = {
    {Tool::WebGpu, "webgpu_limits", For::Any,
     "requestDevice({requiredLimits: {maxBufferSize, maxStorageBufferBindingSize}}) with adapter.limits",
     "the defaults "
     "are 256 and 128 MiB, however much the card has"},
    {Tool::WebGpu, "webgpu_dispose", For::Any,
     "destroy buffers when done: tensor.dispose(), session.release(); an update of the library; reload the page",
     "the garbage collector does not free them in time"},
    {Tool::WebGpu, "webgpu_smaller", For::Any,
     "a smaller input (resolution, resize, tile), a quantized model (dtype q8 or fp16), or a buffer split in parts",
     ""},
    {Tool::OnnxRuntime, "onnx_input", For::Any,
     "a smaller input (resolution, resize, tile, batch), a quantized model, fewer execution threads", ""},
    {Tool::OnnxRuntime, "onnx_arena", For::Device,
     "gpu_mem_limit of the CUDA provider (OrtArenaCfg's max_mem) and arena_extend_strategy=kSameAsRequested; "
     "cudnn_conv_use_max_workspace=0; enable_mem_pattern=False where inputs have many sizes",
     ""},
    {Tool::Vulkan, "vulkan_limits", For::Any,
     "smaller tiles or batches; keep below maxMemoryAllocationSize; a newer driver or release",
     "one allocation has a limit, and an integrated card a small heap of its own"},
    {Tool::TensorRt, "tensorrt_workspace", For::Any,
     "config.set_memory_pool_limit(WORKSPACE, N), trtexec --memPoolSize=workspace:N: larger if no implementation is "
     "found, smaller if it does not fit; free memory of the card while building",
     ""},
    {Tool::Jax,
     "jax_kernel",
     For::Any,
     "smaller block sizes in the Pallas kernel, or a higher vmem_limit_bytes",
     "the limit is that of one core's on-chip memory",
     {"not_memory"}},
    {Tool::Jax, "jax_preallocation", For::Device,
     "XLA_PYTHON_CLIENT_PREALLOCATE=false or XLA_PYTHON_CLIENT_MEM_FRACTION=.7; end other processes of the device",
     "JAX takes three quarters of the card at its start"},
    {Tool::Jax, "jax_unified", For::Device,
     "TF_FORCE_UNIFIED_MEMORY=1 with XLA_PYTHON_CLIENT_MEM_FRACTION=4.0 (AlphaFold 3: XLA_CLIENT_MEM_FRACTION=3.2)",
     "the machine's memory then stands behind the card's"},
    {Tool::Jax, "jax_remat", For::Device,
     "jax.checkpoint (remat), donate_argnums, lax.map or a smaller batch; delete arrays that are not needed (del, "
     "jax.clear_caches())",
     ""},
    {Tool::Jax, "jax_sharding", For::Device, "shard over more devices (jax.sharding), or bfloat16", ""},
    {Tool::TensorFlow, "tensorflow_growth", For::Device,
     "tf.config.experimental.set_memory_growth(gpu, True) or a memory_limit; a smaller batch; mixed_float16; "
     "TF_GPU_ALLOCATOR=cuda_malloc_async",
     ""},
    {Tool::DeepSpeed, "deepspeed_offload", For::Host,
     "offload_optimizer and offload_param off, or to NVMe in place of the CPU; pin_memory false; fewer ranks load at "
     "once",
     "what ZeRO offloads to the CPU is in the machine's memory; until it is partitioned, each rank has all of it"},
    {Tool::DeepSpeed, "deepspeed_stage", For::Device,
     "ZeRO stage 3, offload_optimizer and offload_param to the CPU, gradient checkpointing, a smaller micro batch", ""},
    {Tool::DeepSpeed, "deepspeed_buckets", For::Device,
     "smaller reduce_bucket_size, stage3_prefetch_bucket_size, stage3_max_live_parameters",
     "each rank holds such buffers beside its part"},
    {Tool::DeepSpeed, "deepspeed_loading", For::Host,
     "one rank at a time reads the checkpoint, or zero.Init and low_cpu_mem_usage=True: no whole copy of the model for "
     "each rank",
     "eight ranks that load a model hold it eight times"},
    {Tool::Splatting, "splatting_pictures", For::Any,
     "--data_device cpu (nerfstudio: cache_images cpu, cache_images_type uint8), smaller pictures (-r 2, 4 or 8; "
     "--downscale-factor; resize), fewer images",
     "all pictures of a scene stay in memory as float32 by default"},
    {Tool::Splatting, "splatting_points", For::Device,
     "fewer Gaussians: a higher densify_grad_threshold, an earlier densify_until_iter, a cap (cap_max), more culling, "
     "fewer initial points",
     "their number grows while it trains"},
    {Tool::Splatting, "splatting_build", For::Device,
     "build the extensions for this card (TORCH_CUDA_ARCH_LIST), with the CUDA version of torch",
     "code for another architecture fails, and the error says that memory ran out"},
    {Tool::Volumes, "volumes_host_result", For::Device,
     "the result of a sliding window on the host: nnUNetPredictor(perform_everything_on_device=False), "
     "sliding_window_inference(..., device=\"cpu\", sw_batch_size=1)",
     "the result has one channel for each class, each as large as the whole volume"},
    {Tool::Volumes, "volumes_patch", For::Device, "a smaller patch (roi_size, the plan for a smaller card), batch 1",
     ""},
    {Tool::Volumes, "volumes_workers", For::Host,
     "fewer processes: -npp 1 -nps 1, nnUNet_n_proc_DA=2, num_workers; CacheDataset(cache_rate=0.1) or "
     "PersistentDataset; lower resolution or crops",
     "each process holds whole volumes"},
    {Tool::Ultralytics, "ultralytics_batch", For::Device,
     "batch=4 (batch=-1 finds one), imgsz=640 or less, a smaller model (n, s), amp=True", ""},
    {Tool::Ultralytics, "ultralytics_crowded", For::Device, "fewer objects in one picture: crops, mosaic=0",
     "the assigner compares each object with each anchor"},
    {Tool::Ultralytics, "ultralytics_host", For::Host, "workers=2 or 0, cache=False (or cache=\"disk\")",
     "a cache in RAM holds all pictures"},
    {Tool::LmTrainer, "lmtrainer_length", For::Device,
     "shorter samples (cutoff_len, sequence_len, max_seq_length, max_length), per_device_train_batch_size=1 with "
     "accumulation; fewer pixels and frames (image_max_pixels, max_pixels, resize)",
     "activations and logits grow with batch x length"},
    {Tool::LmTrainer, "lmtrainer_loss", For::Device,
     "a fused or chunked loss (use_liger_kernel, cut_cross_entropy, chunked_cross_entropy), flash attention, "
     "gradient_checkpointing (Unsloth: \"unsloth\")",
     ""},
    {Tool::LmTrainer, "lmtrainer_smaller", For::Device,
     "LoRA or QLoRA (load_in_4bit, quantization_bit 4), an 8-bit optimizer, or ZeRO 3 with offload "
     "(ds_z3_offload_config.json) or FSDP over several cards",
     ""},
    {Tool::LmTrainer,
     "lmtrainer_evaluation",
     For::Any,
     "per_device_eval_batch_size=1, eval_accumulation_steps, a smaller evaluation set or none (eval_strategy no)",
     "an evaluation keeps the logits of all samples until its end",
     {"outputs_kept", "validation_with_graph"}},
    {Tool::LmTrainer, "lmtrainer_host", For::Host,
     "fewer preprocessing_num_workers and dataloader_num_workers, streaming: true, no offload to the host, more RAM",
     ""},
    {Tool::Megatron, "megatron_recompute", For::Device,
     "--micro-batch-size 1, --recompute-granularity full --recompute-method uniform --recompute-num-layers 1, a "
     "shorter "
     "--seq-length",
     ""},
    {Tool::Megatron, "megatron_parallel", For::Device,
     "a larger --tensor-model-parallel-size (with --sequence-parallel), --pipeline-model-parallel-size or "
     "--context-parallel-size; --use-distributed-optimizer, --optimizer-cpu-offload",
     ""},
    {Tool::Megatron,
     "megatron_resume",
     For::Device,
     "to resume: torch.cuda.empty_cache() after the load, --no-load-optim as a trial",
     "loading a distributed checkpoint makes the optimizer's state twice",
     {"checkpoint_loaded_twice", "loaded_to_device", "fragmentation"}},
    {Tool::Megatron, "megatron_host", For::Host, "fewer --num-workers, docker run --shm-size=64g (or --ipc=host)", ""},
    {Tool::Verl, "verl_utilization", For::Device,
     "actor_rollout_ref.rollout.gpu_memory_utilization=0.4 (OpenRLHF: --vllm_gpu_memory_utilization), "
     "rollout.free_cache_engine=True (--vllm_enable_sleep)",
     "the generator's share stays reserved while the actor trains"},
    {Tool::Verl, "verl_micro_batch", For::Device,
     "ppo_micro_batch_size_per_gpu=1 and log_prob_micro_batch_size_per_gpu=1, or use_dynamic_bsz with a lower "
     "ppo_max_token_len_per_gpu (NeMo RL: logprob_chunk_size)",
     "the logits of a micro batch are one piece"},
    {Tool::Verl, "verl_offload", For::Device,
     "fsdp_config.param_offload=True and optimizer_offload=True, enable_gradient_checkpointing=True, a larger "
     "tensor_model_parallel_size",
     ""},
    {Tool::Verl, "verl_host", For::Host,
     "less offload to the host, a smaller train_batch_size, val_batch_size and rollout.n, a smaller replay buffer; "
     "more "
     "RAM for each node",
     "what is offloaded, and all rollouts of a step, are in the machine's memory"},
    {Tool::Trl, "trl_generation", For::Device,
     "fewer num_generations, a shorter max_completion_length and max_length; a lower vllm_gpu_memory_utilization "
     "(vllm_enable_sleep_mode=True)",
     ""},
    {Tool::Trl, "trl_loss", For::Device,
     "per_device_train_batch_size=1 with gradient_accumulation_steps, use_liger_kernel=True, "
     "gradient_checkpointing=True",
     "logits of long completions are the largest tensors"},
    {Tool::Fsdp, "fsdp_shard", For::Device,
     "FULL_SHARD (fully_shard with reshard_after_forward=True), a wrap policy for each block "
     "(transformer_auto_wrap_policy), limit_all_gathers=True",
     "one wrapped unit is gathered as a whole"},
    {Tool::Fsdp, "fsdp_offload", For::Device,
     "CPUOffload(offload_params=True), activation checkpointing of each block, a smaller batch", ""},
    {Tool::Fsdp, "fsdp_loading", For::Host,
     "sync_module_states=True: only rank 0 reads the weights, the others start on the meta device; save with sharded "
     "state dicts (rank0_only, offload_to_cpu)",
     "else each rank holds the whole model on the host"},
    {Tool::Ddp, "ddp_views", For::Device,
     "DistributedDataParallel(..., gradient_as_bucket_view=True), a smaller batch for each card", ""},
    {Tool::Ddp, "ddp_shard", For::Device, "FSDP (fully_shard), or ZeroRedundancyOptimizer",
     "each rank holds weights, gradients and optimizer state whole"},
    {Tool::Ddp, "ddp_workers", For::Host, "fewer loader workers: num_workers counts for each rank", ""},
    {Tool::Transformers, "trainer_batch", For::Device,
     "per_device_train_batch_size=1 with gradient_accumulation_steps=N; a shorter max_length", ""},
    {Tool::Transformers, "trainer_lean", For::Device,
     "gradient_checkpointing=True, bf16=True, optim=\"adamw_bnb_8bit\"; LoRA or QLoRA in place of full training", ""},
    {Tool::Transformers,
     "trainer_evaluation",
     For::Any,
     "eval_accumulation_steps=N, preprocess_logits_for_metrics that returns logits.argmax(-1), "
     "per_device_eval_batch_size=1",
     "an evaluation keeps the logits of all samples until its end",
     {"outputs_kept", "logits", "validation_with_graph"}},
    {Tool::Transformers,
     "trainer_loss",
     For::Device,
     "use_liger_kernel=True, and the model with attn_implementation=\"flash_attention_2\" or \"sdpa\"",
     "then neither the logits nor the attention scores are ever in memory as a whole",
     {"logits", "single_request_too_big", "activations"}},
    {Tool::Transformers, "trainer_host", For::Host,
     "dataloader_num_workers=0, load_dataset(..., streaming=True), low_cpu_mem_usage=True", ""},
    {Tool::Triton, "triton_blocks", For::Any,
     "a smaller block size, fewer num_stages (2 or 1) in the kernel's configs; a newer version of the library that "
     "brings the kernel",
     "the limit is that of one multiprocessor's shared memory: 99 KiB on consumer cards, 163 or 227 on A100 and H100"},
    {Tool::Nccl, "nccl_buffers", For::Device,
     "leave 1 to 2 GiB of the card free (a smaller batch or share); NCCL_BUFFSIZE=1048576, NCCL_MAX_NCHANNELS=4",
     "each communicator takes its buffers outside the pool"},
    {Tool::Nccl, "nccl_device", For::Device,
     "torch.cuda.set_device(local_rank) before init_process_group; one rank for each card", ""},
    {Tool::Nccl, "nccl_shm", For::Host,
     "docker run --shm-size=1g or --ipc=host; NCCL_SHM_DISABLE=1 shows whether /dev/shm is too small",
     "ranks of one machine hand data over in /dev/shm"},
    {Tool::LmStudio, "lmstudio_offload", For::Device,
     "GPU offload: fewer layers; a shorter context length; flash attention with a quantized KV cache", ""},
    {Tool::LmStudio, "lmstudio_smaller", For::Any, "a smaller quantization (Q4_K_M) or a smaller model", ""},
    {Tool::LmStudio, "lmstudio_guardrails", For::Host,
     "Settings, model loading guardrails: relaxed or off, if the estimate is wrong; end other programs", ""},
    {Tool::DirectMl, "directml_smaller", For::Device,
     "a smaller resolution, batch or model; --lowvram or --use-split-cross-attention; end other programs of the GPU",
     "DirectML gives memory back late and in large pieces"},
    {Tool::DirectMl, "directml_other", For::Device,
     "ZLUDA or ROCm (AMD), the XPU build (Intel) or CUDA in place of DirectML", "DirectML is no longer developed"},
    {Tool::Python, "python_parts", For::Host,
     "work in parts: chunks (pandas: chunksize; polars: scan_... with engine=\"streaming\"), generators, np.memmap, "
     "load_dataset(streaming=True)",
     "an array is one piece: it fits as a whole or not at all"},
    {Tool::Python, "python_dtype", For::Host,
     "smaller dtypes: float32 or uint8 in place of float64, sparse in place of dense", ""},
    {Tool::Python, "python_room", For::Host, "more RAM, swap or page file; fewer programs at once", ""},
    {Tool::Kernel, "kernel_fewer", For::Host,
     "fewer processes at once: loader workers (num_workers), concurrent runs, build jobs (MAX_JOBS=4 for pip and "
     "ninja, -j 1); pip install --no-cache-dir",
     "the kernel ends the largest process, which need not be the one that grew"},
    {Tool::Kernel, "kernel_room", For::Host,
     "more RAM or more swap; of a container or VM (WSL2: .wslconfig memory=) a higher memory limit",
     "the kernel's log (dmesg) says which limit it was: CONSTRAINT_MEMCG is a container's"},
    {Tool::Dask, "dask_limit", For::Any,
     "memory_limit of each worker, and distributed.worker.memory.target, spill, pause, terminate (a share, or false)",
     "a nanny restarts a worker that passes its limit"},
    {Tool::Dask, "dask_chunks", For::Any, "smaller chunks or partitions, fewer threads for each worker", ""},
    {Tool::DuckDb, "duckdb_limit", For::Any, "SET memory_limit='16GB' (a share of the machine's memory, not all of it)",
     "by default the engine limits itself to 80 % of the memory"},
    {Tool::DuckDb, "duckdb_threads", For::Any,
     "SET threads=4; SET preserve_insertion_order=false; SET temp_directory='...' on a large disk, so that it can "
     "spill",
     "each thread has buffers of its own"},
    {Tool::ClickHouse, "clickhouse_limit", For::Any,
     "a higher max_server_memory_usage (max_server_memory_usage_to_ram_ratio) or, for one query, max_memory_usage",
     "the server limits itself to a share of what the machine or the container has"},
    {Tool::ClickHouse, "clickhouse_spill", For::Any,
     "max_bytes_before_external_group_by and max_bytes_before_external_sort, fewer max_threads, smaller inserts; a "
     "newer version, if the error says that ClickHouse holds far more than its process does",
     ""},
    {Tool::Boosting, "boosting_batches", For::Any,
     "XGBoost: QuantileDMatrix in place of DMatrix; ExtMemQuantileDMatrix with fewer, larger batches; fewer max_bin; "
     "sampling_method=\"gradient_based\" with subsample=0.2",
     "each batch has a sketch of its own"},
    {Tool::Boosting, "boosting_lean", For::Any,
     "CatBoost: gpu_ram_part, gpu_cat_features_storage=\"CpuPinnedMemory\", border_count=32, max_ctr_complexity=1; "
     "LightGBM: gpu_use_dp=false, max_bin=63; a smaller depth, fewer columns or rows",
     ""},
    {Tool::Boosting, "boosting_host", For::Any, "device=\"cpu\" (task_type=\"CPU\"), or one training at a time",
     "a search over parameters runs several at once"},
    {Tool::Rapids, "rapids_managed", For::Any,
     "rmm.reinitialize(managed_memory=True), and cupy on rmm's allocator; cudf.set_option(\"spill\", True)",
     "the machine's memory stands behind the card's"},
    {Tool::Rapids, "rapids_parts", For::Any,
     "smaller partitions or chunks (dask-cudf, chunked readers); sparse matrices kept sparse; float32", ""},
    {Tool::Node, "node_heap", For::Any, "NODE_OPTIONS=--max-old-space-size=8192",
     "V8 limits its heap to 2 to 4 GB, however much the machine has"},
    {Tool::Node, "node_work", For::Any,
     "less at once: fewer workers (--maxWorkers=2), no source maps (GENERATE_SOURCEMAP=false), one package at a time",
     ""},
    {Tool::Java, "java_heap", For::Any,
     "-Xmx8g (JAVA_OPTS, _JAVA_OPTIONS; of Gradle org.gradle.jvmargs, of Maven MAVEN_OPTS and surefire's argLine; "
     "Spark: "
     "spark.driver.memory, spark.executor.memory, and outside the heap spark.executor.memoryOverhead); in a container "
     "-XX:MaxRAMPercentage=75",
     "by default the virtual machine limits its heap to a quarter of the memory"},
    {Tool::Php, "php_limit", For::Any,
     "memory_limit=512M in php.ini (php -d memory_limit=512M; WordPress: WP_MEMORY_LIMIT), or fewer rows at once",
     "by default PHP gives a request 128 MiB"},
    {Tool::Ray, "ray_memory", For::Host,
     "fewer tasks at once (num_cpus or memory of each), smaller buffers (replay, rollout, batch) and offload to disk; "
     "RAY_memory_usage_threshold=0.98",
     "Ray kills the largest task when the node's memory is 95 % full"},
    {Tool::Slurm, "slurm_mem", For::Any,
     "#SBATCH --mem=64G (or --mem-per-cpu); sacct -j ID --format=MaxRSS,ReqMem shows both",
     "the job is killed when it holds more than it asked for, however much the node has"},
    {Tool::Workflow, "workflow_memory", For::Any,
     "Nextflow: process { withName: NAME { memory = { 16.GB * task.attempt }; errorStrategy = 'retry' } }, "
     "--max_memory; "
     "Snakemake: resources: mem_mb=64000 (--default-resources)",
     "the container or job of a step is ended when it holds more than the step asked for"},
    {Tool::Workflow, "workflow_fewer", For::Any,
     "fewer steps at once (maxForks, --cores, --jobs), smaller pieces of the input; Docker's VM with more memory", ""},
    {Tool::Kubernetes, "kubernetes_limit", For::Any,
     "a higher resources.limits.memory (and requests.memory) of the container",
     "the container is killed at its limit, whatever the node has"},
    {Tool::Docker, "docker_limit", For::Any,
     "docker run --memory=16g (compose: mem_limit, deploy.resources.limits.memory; Docker Desktop: its VM's memory), "
     "--shm-size=8g",
     ""},
    {Tool::Hosting, "hosting_plan", For::Any,
     "a plan with more memory: of AWS Lambda MemorySize (--memory-size), of Cloud Run --memory, of a Space other "
     "hardware; the memory limit of free plans is 0.5 to 16 GB",
     "the service ends what passes its plan's memory limit"},
    {Tool::Hosting, "hosting_lean", For::Any,
     "a smaller model or a quantized one (ONNX), torch without CUDA (the cpu wheels), one worker, and models loaded "
     "once",
     ""},
    {Tool::Paddle, "paddle_input", For::Any,
     "a smaller input (limit_side_len, resize), a smaller batch (rec_batch_num), FLAGS_allocator_strategy=auto_growth; "
     "end other processes of the device",
     "memory grows with the largest picture"},
    {Tool::Notebook, "notebook_runtime", For::Any,
     "a runtime with more RAM; work in parts (chunks, generators, del and gc.collect()), smaller dtypes", ""},
};

}  // namespace

std::span<const ToolAdvice> framework_advice() { return kFrameworkAdvice; }

}  // namespace ullage::diagnose
