// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/option_list.h"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace ullage::vqgan_clip {
namespace {

constexpr program::ShortOption kShort[] = {{"p", "prompts"},
                                           {"ip", "image-prompts"},
                                           {"i", "iterations"},
                                           {"se", "save-every"},
                                           {"s", "size"},
                                           {"ii", "init-image"},
                                           {"in", "init-noise"},
                                           {"iw", "init-weight"},
                                           {"m", "clip"},
                                           {"conf", "config"},
                                           {"ckpt", "checkpoint"},
                                           {"nps", "noise-prompt-seeds"},
                                           {"lr", "learning-rate"},
                                           {"npw", "noise-prompt-weights"},
                                           {"cutm", "cut-method"},
                                           {"cuts", "num-cuts"},
                                           {"cutp", "cut-power"},
                                           {"sd", "seed"},
                                           {"opt", "optimiser"},
                                           {"o", "out"},
                                           {"vid", "video"},
                                           {"zvid", "zoom-video"},
                                           {"zs", "zoom-start"},
                                           {"zse", "zoom-save-every"},
                                           {"zsc", "zoom-scale"},
                                           {"zsx", "zoom-shift-x"},
                                           {"zsy", "zoom-shift-y"},
                                           {"vl", "video-length"},
                                           {"cpe", "change-prompt-every"},
                                           {"ofps", "output-video-fps"},
                                           {"d", "deterministic"},
                                           {"ifps", "input-video-fps"},
                                           {"aug", "augments"},
                                           {"cd", "cuda-device"},
                                           {"vsd", "video-style-dir"}};

void add_subject(CLI::App& app, Options& o, OptionWords& w) {
  app.add_option("--prompts", w.prompts, "texts: \"a cat:1|in snow:0.5\"; '^' stands\nbetween the phrases of a story");
  app.add_option("--image-prompts", w.image_prompts, "pictures to resemble: \"a.png:1|b.jpg:0.5\"");
  app.add_option("--noise-prompt-seeds", w.noise_seeds, "seeds of random directions to go towards")->expected(0, -1);
  app.add_option("--noise-prompt-weights", w.noise_weights, "the weight of each of these directions")->expected(0, -1);
  app.add_option("--change-prompt-every", o.change_prompt_every, "iterations for each phrase of a story")
      ->capture_default_str();
  app.add_option("--init-image", o.init_image, "picture to begin with (PNG or JPEG)");
  app.add_option("--init-noise", w.init_noise, "begin with pixels or gradient (default: random codes)");
  app.add_option("--init-weight", o.init_weight, "how strongly codes are held near zero")->capture_default_str();
}

void add_files(CLI::App& app, Options& o) {
  app.add_option("--config,--vqgan-config", o.config, "yaml of the VQGAN")->capture_default_str();
  app.add_option("--checkpoint,--vqgan-checkpoint", o.checkpoint, "weights of the VQGAN")->capture_default_str();
  app.add_option("--clip,--clip-model", o.clip, "file of CLIP, or the name of one in ~/.cache/clip")
      ->capture_default_str();
  app.add_option("--vocabulary", o.vocabulary, "file of CLIP's byte pairs")->capture_default_str();
  app.add_option("--out,--output", o.out, "picture to write (PNG)")->capture_default_str();
}

void add_work(CLI::App& app, Options& o, OptionWords& w) {
  app.add_option("--size", w.size, "512x384 or 512 384; rounded down to the\nnetwork's squares")
      ->expected(1, -1)  // any number, so that parse_size() can say what is wrong with a third word
      ->capture_default_str();
  app.add_option("--iterations,--max-iterations", o.iterations, "steps")->capture_default_str();
  app.add_option("--save-every", o.save_every, "iterations between two pictures")->capture_default_str();
  app.add_option("--learning-rate", o.learning_rate, "learning rate of the optimiser")->capture_default_str();
  app.add_option("--optimiser,--optimizer", w.optimizer,
                 "Adam, AdamW, Adagrad, Adamax, DiffGrad, AdamP,\nRAdam, RMSprop")
      ->capture_default_str();
  app.add_option("--cut-method", w.cut_method, "latest, original, updated, nrupdated, updatedpooling")
      ->capture_default_str();
  app.add_option("--num-cuts", o.cuts, "cutouts that CLIP sees")->capture_default_str();
  app.add_option("--cut-power", o.cut_power, "above 1: smaller cutouts")->capture_default_str();
  app.add_option("--augments", w.augments,
                 "augmentations of the cutouts: any of Ji Sh Gn Pe Ro\nAf Et Ts Cr Er Re, in the order to apply them")
      ->expected(1, -1)
      ->capture_default_str();
  app.add_option("--precision", w.precision,
                 "type in which layers compute: fp32, bf16 or fp16;\nweights stay in float32")
      ->capture_default_str();
  app.add_option("--seed", w.seed, "seed of all draws; 0 is one too (default: random)");
  app.add_option("--threads", o.threads, "threads of torch (default: torch decides)");
  app.add_option("--allow", w.allowed,
                 "cut-chunks, code-rows, attention-rows: compute\nthese in pieces, which needs less memory and\nrounds "
                 "differently")
      ->expected(1, -1);
  app.add_flag("--quiet", o.quiet, "print errors only");
}

void add_video(CLI::App& app, Options& o) {
  app.add_flag("--video", o.video, "every picture as a numbered PNG in steps/");
  app.add_flag("--zoom-video", o.zoom_video, "as --video, and zooms the picture between frames");
  app.add_option("--zoom-start", o.zoom_start, "iteration at which the zoom begins")->capture_default_str();
  app.add_option("--zoom-save-every", o.zoom_save_every, "iterations for each frame")->capture_default_str();
  app.add_option("--zoom-scale", o.zoom_scale, "zoom of each frame; above 1: inwards")->capture_default_str();
  app.add_option("--zoom-shift-x", o.zoom_shift_x, "shift of each frame in pixels")->capture_default_str();
  app.add_option("--zoom-shift-y", o.zoom_shift_y, "shift of each frame in pixels")->capture_default_str();
}

void add_taken(CLI::App& app, OptionWords& w) {
  const std::string group = "Accepted because published command lines have them";
  app.add_option("--cuda-device", w.device, "only cpu: it computes on no card")->capture_default_str()->group(group);
  app.add_flag("--deterministic", w.deterministic, "no effect: it always is deterministic")->group(group);
  app.add_option("--video-length", w.video_length, "no effect: frames stay PNGs")->group(group);
  app.add_option("--output-video-fps", w.output_fps, "no effect")->group(group);
  app.add_option("--input-video-fps", w.input_fps, "no effect")->group(group);
  app.add_option("--video-style-dir", w.style_folder, "not supported: run once with --init-image for\neach frame")
      ->group(group);
}

void add_tests(CLI::App& app, Options& o) {
  const std::string group = "For tests";
  app.add_flag("--double", o.in_double, "compute in float64")->group(group);
  app.add_option("--dump", o.dump, "file to write every iteration's tensors and figures to")->group(group);
}

}  // namespace

std::span<const program::ShortOption> short_options() { return kShort; }

void add_options(CLI::App& app, Options& options, OptionWords& words) {
  add_subject(app, options, words);
  add_files(app, options);
  add_work(app, options, words);
  add_video(app, options);
  add_taken(app, words);
  add_tests(app, options);
  // CLI11 has no short names of more than one letter. So they are put into the help here, and are replaced by the long
  // names before CLI11 parses (program::long_option).
  for (const program::ShortOption& one : kShort) {
    CLI::Option* option = app.get_option("--" + std::string(one.stands_for));
    option->description("-" + std::string(one.name) + ": " + option->get_description());
  }
}

}  // namespace ullage::vqgan_clip
