"""The keys of GPT-NeoX with their types, as `megatron/neox_arguments` states them at ea7aefd (2026-05-19)."""

from __future__ import annotations

_NAMES = {
    "truth": """
        adlr_autoresume allow_chopped apply_query_key_layer_scaling attention_softmax_in_fp32
        bias_dropout_fusion bias_gelu_fusion char_level_ppl checkpoint_activations checkpoint_in_cpu
        checkpoint_validation_with_forward_pass communication_data_type contiguous_checkpointing
        coord_check deepscale deepspeed deepspeed_activation_checkpointing deepspeed_mpi
        deepspeed_slurm do_test do_train do_valid dpo_fp32 dpo_reference_free dump_state
        dynamic_loss_scale eod_mask_loss finetune force_multi force_multi fp16_lm_cross_entropy
        fp32_allreduce fp32_reinforce gpt_j_residual gpt_j_tied gradient_noise_scale_cpu_offload
        is_pipe_parallel kto_fp32 layernorm_fusion lazy_mpu_init log_grad_norm log_grad_pct_zeros
        log_gradient_noise_scale log_optimizer_states log_param_norm mamba_causal_conv_fusion
        mamba_inner_func_fusion mamba_selective_fp32_params mamba_selective_scan_fusion
        mamba_use_bias_in_conv mamba_use_bias_in_linears memory_profiling mmap_warmup
        moe_lbl_in_fp32 no_load_optim no_load_rng no_save_optim no_save_rng no_ssh_check
        no_weight_tying onnx_safe override_lr_scheduler partition_activations prescale_gradients
        profile profile_backward recompute reinforce_leave_one_out return_logits rmsnorm_fusion
        rope_fusion rotary_save_freqs_buffer save_base_shapes scaled_masked_softmax_fusion
        scaled_upper_triang_masked_softmax_fusion sequence_parallel serve_model_weights
        sparse_gradients synchronize_each_layer te_columnparallel te_fp8_mha te_fp8_wgrad
        te_layernorm_mlp te_mha te_rowparallel use_bias_in_attn_linear use_bias_in_mlp
        use_bias_in_norms use_bnb_optimizer use_checkpoint_lr_scheduler use_comet
        use_cpu_initialization use_flashattn_swiglu use_mup use_qk_layernorm use_shared_fs use_wandb
        wall_clock_breakdown wandb_init_all_ranks weight_by_num_documents zero_contiguous_gradients
        zero_reduce_scatter
    """,
    "int": """
        adlr_autoresume_interval batch_size checkpoint_num_layers curriculum_seqlen dim_att
        eval_interval eval_iters exit_interval ffn_dim global_num_gpus gmlp_attn_dim
        gradient_accumulation_steps gradient_noise_scale_n_batches head_size hidden_size hysteresis
        intermediate_size iteration keep_last_n_checkpoints local_rank log_interval lr_decay_iters
        make_vocab_size_divisible_by master_port max_position_embeddings maximum_tokens
        mlp_multiple_of model_parallel_size moe_expert_interval moe_num_experts moe_top_k
        mup_width_scale num_attention_heads num_gpus num_kv_heads num_layers num_nodes num_samples
        num_unique_layers num_workers opt_pos_emb_offset padded_vocab_size pipe_parallel_size
        profile_step_start profile_step_stop rank rotary_emb_base rpe_max_distance rpe_num_buckets
        s3_chunk_size seed seq_length sliding_window_width steps_per_print te_fp8_amax_history_len
        te_fp8_margin top_k train_batch_size train_epochs train_iters train_micro_batch_size_per_gpu
        world_size zero_allgather_bucket_size zero_reduce_bucket_size
    """,
    "text": """
        account autotuning_run base_shapes_file comet_experiment_name comet_project comet_workspace
        comment data_path deepscale_config distributed_backend eval_results_prefix exclude
        fused_kernels_build_path git_hash hostfile include load log_dir master_addr
        memory_profiling_path merge_file param_sharing_style pipe_partition_method
        precompute_model_name prompt_end s3_path sample_input_file sample_output_file save split
        te_fp8_amax_compute_algo tensorboard_dir text_gen_type user_script vocab_file wandb_group
        wandb_host wandb_project wandb_run_name wandb_team
    """,
    "float": """
        attention_dropout checkpoint_factor clip_grad dpo_beta expansion_factor gradient_clipping
        gradient_predivide_factor hidden_dropout init_method_std kl_div_beta kto_beta
        kto_desirable_weight kto_undesirable_weight layernorm_epsilon loss_scale loss_scale_window
        lr lr_decay_fraction min_lr min_scale moe_jitter_eps mup_attn_temp mup_embedding_mult
        mup_init_scale mup_output_temp mup_rp_embedding_mult peak_theoretical_tflops
        rms_norm_epsilon rotary_pct scalenorm_epsilon short_seq_prob temperature top_p warmup
        weight_decay weighted_sampler_alpha z_loss
    """,
    "list": """
        attention_config comet_tags eval_tasks extra_save_iters neg_test_data_paths
        neg_test_label_data_paths neg_train_data_paths neg_train_label_data_paths
        neg_valid_data_paths neg_valid_label_data_paths pos_test_data_paths
        pos_test_label_data_paths pos_train_data_paths pos_train_label_data_paths
        pos_valid_data_paths pos_valid_label_data_paths test_data_paths test_data_weights
        test_label_data_paths test_reward_data_paths train_data_paths train_data_weights
        train_label_data_paths train_reward_data_paths valid_data_paths valid_data_weights
        valid_label_data_paths valid_reward_data_paths
    """,
    "table": """
        activation_checkpointing amp autotuning autotuning bf16 checkpoint comet_others comms_logger
        compression_training config_files csv_monitor curriculum_learning data_efficiency data_types
        deepspeed_extra_args elasticity flops_profiler fp16 optimizer scheduler soft_prompt_tuning
        sparse_attention sparsity_config tensorboard wandb zero_optimization
    """,
    "any": """
        comet_experiment online_dataserver_ips online_dataserver_ports weight_server_port zero_stage
    """,
}
_CHOICES = {
    "activation": "gelu|geglu|relu|softsign|swish|mish|silu|reglu|swiglu|bilinear|glu",
    "checkpoint_scale": "linear|log",
    "data_impl": "infer|mmap|cached",
    "dataset_impl": "gpt2|pairwise|online",
    "init_method": "normal|scaled_normal|orthogonal|scaled_orthogonal|"
    "xavier_uniform|xavier_normal|wang_init|small_init|single_residual_scaled_normal",
    "output_layer_init_method": "normal|scaled_normal|orthogonal|scaled_orthogonal|"
    "xavier_uniform|xavier_normal|wang_init|small_init|single_residual_scaled_normal",
    "kl_impl": "abs|mse|kl|full",
    "launcher": "pdsh|openmpi|mvapich|slurm",
    "lr_decay_style": "constant|linear|cosine|exponential",
    "moe_router_type": "sinkhorn|topk",
    "norm": "layernorm|rmsnorm|non_parametric_layernorm|scalenorm|te_rmsnorm|te_layernorm",
    "optimizer_type": "adam|onebitadam|cpu_adam|cpu_torch_adam|sm3|madgrad_wd|sgd|lion",
    "output_layer_parallelism": "column",
    "pack_impl": "packed|pack_until_overflow|unpacked",
    "pos_emb": "learned|rotary|sinusoidal|rpe|alibi|none",
    "precision": "fp16|fp32|bfloat16",
    "te_fp8_format": "e4m3|hybrid",
    "tokenizer_type": "GPT2BPETokenizer|HFTokenizer|HFGPT2Tokenizer|"
    "SPMTokenizer|CharLevelTokenizer|TiktokenTokenizer",
    "train_impl": "normal|dpo|rm|kto|reinforce",
}

KINDS: dict[str, str] = {
    **{name: f"{kind}?" for kind, names in _NAMES.items() for name in names.split()},
    **{name: f"{kind}?" for name, kind in _CHOICES.items()},
}
"""Every key may be null: its default is often no value."""
