// SPDX-License-Identifier: Apache-2.0
#include "pulse/options.h"

#include "program/option_words.h"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>
#include <map>
#include <sstream>

namespace ullage::pulse {
namespace {

constexpr std::int64_t kMost = 1'000'000'000;
constexpr std::int64_t kMostLayers = 18;

const std::map<std::string, NoiseType> kNoiseTypes = {
    {"zero", NoiseType::Zero}, {"fixed", NoiseType::Fixed}, {"trainable", NoiseType::Trainable}};
const std::map<std::string, OptimizerKind> kOptimizers = {{"adam", OptimizerKind::Adam},
                                                          {"sgd", OptimizerKind::Sgd},
                                                          {"sgdm", OptimizerKind::SgdMomentum},
                                                          {"adamax", OptimizerKind::Adamax}};

// Option values as given, before they are parsed.
struct Words {
  std::string loss = std::string(kDefaultLoss);
  std::string noise_type = "trainable";
  std::string bad_noise_layers = "17";
  std::string optimizer = "adam";
  std::string schedule = "linear1cycledrop";
  std::string precision = "fp32";
  std::int64_t seed = 0;
};

void add_options(CLI::App& app, Options& o, Words& w) {
  app.add_option("--input,--input-dir", o.input, "a picture (PNG or JPEG, square), or a folder of them")
      ->capture_default_str();
  app.add_option("--out,--output-dir", o.out, "folder for the faces found")->capture_default_str();
  app.add_option("--cache-dir", o.cache, "folder of weights that are not named below")->capture_default_str();
  app.add_option("--synthesis", o.synthesis, "file of the synthesis network");
  app.add_option("--mapping", o.mapping, "file of the mapping network; needed if there is\nno gaussian fit");
  app.add_option("--gaussian-fit", o.gaussian_fit, "file of its statistics; computed if it is missing")
      ->capture_default_str();
  app.add_option("--steps", o.steps, "steps of a search")->capture_default_str();
  app.add_option("--loss-str", w.loss, "weight*TERM+...: L2, L1, GEOCROSS")->capture_default_str();
  app.add_option("--eps", o.eps, "the largest L2 of a downscaled face that will do")->capture_default_str();
  app.add_option("--noise-type", w.noise_type, "zero, fixed, trainable")->capture_default_str();
  app.add_option("--num-trainable-noise-layers", o.trainable_noise_layers,
                 "how many of the first noises are searched too")
      ->capture_default_str();
  app.add_option("--bad-noise-layers", w.bad_noise_layers, "layers whose noise is zero, as in 16.17")
      ->capture_default_str();
  app.add_flag("--tile-latent", o.tile_latent, "one latent for all layers");
  app.add_option("--opt-name", w.optimizer, "adam, sgd, sgdm, adamax")->capture_default_str();
  app.add_option("--learning-rate", o.learning_rate, "the largest learning rate of the schedule")
      ->capture_default_str();
  app.add_option("--lr-schedule", w.schedule, "fixed, linear1cycle, linear1cycledrop")->capture_default_str();
  app.add_option("--duplicates", o.duplicates, "searches for each picture")->capture_default_str();
  app.add_option("--batch-size,--batch", o.batch_size, "searches at once")->capture_default_str();
  app.add_option("--precision", w.precision,
                 "type in which layers compute: fp32, bf16 or fp16;\nweights stay in float32")
      ->capture_default_str();
  app.add_option("--seed", w.seed, "seed of the first search, one more for each next;\n0 is a seed (default: random)");
  app.add_flag("--save-intermediate", o.save_intermediate, "write the best face of every step, large and\ndownscaled");
  app.add_flag("--keep-best", o.keep_best, "write the best face even if --eps was not reached");
  app.add_option("--threads", o.threads, "threads of torch (default: torch decides)");
  app.add_flag("--quiet", o.quiet, "print errors only");
  app.add_flag("--double", o.in_double, "compute in float64")->group("For tests");
  app.add_option("--fit-samples", o.fit_samples, "latents that a gaussian fit is computed from")
      ->capture_default_str()
      ->group("For tests");
  app.add_option("--start", o.start, "file of latents and noises to begin with")->group("For tests");
  app.add_option("--dump", o.dump, "file to write every step's tensors and figures to; one batch")->group("For tests");
}

std::string number_shown(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// Parses layers such as "16.17"; empty text means no layer. Returns false for anything else.
bool parse_layers(const std::string& text, std::vector<std::int64_t>& layers) {
  layers.clear();
  if (text.empty()) return true;
  std::istringstream in(text + ".");
  for (std::string part; std::getline(in, part, '.');) {
    std::int64_t layer = -1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), layer);
    if (error != std::errc{} || end != part.data() + part.size() || layer < 0 || layer >= kMostLayers) return false;
    layers.push_back(layer);
  }
  return true;
}

// Parses the words into `o`. Returns what is wrong, or "".
std::string take_words(const Words& w, bool seed_given, Options& o) {
  auto loss = parse_loss(w.loss);
  if (!loss) return loss.error().text();
  o.loss = std::move(*loss);
  const auto noise_type = kNoiseTypes.find(w.noise_type);
  if (noise_type == kNoiseTypes.end()) {
    return "--noise-type " + w.noise_type + " is unknown; known are zero, fixed and trainable";
  }
  o.noise_type = noise_type->second;
  const auto optimizer = kOptimizers.find(w.optimizer);
  if (optimizer == kOptimizers.end()) {
    return "--opt-name " + w.optimizer + " is unknown; known are adam, sgd, sgdm and adamax";
  }
  o.optimizer = optimizer->second;
  const auto schedule = schedule_named(w.schedule);
  if (!schedule) {
    return "--lr-schedule " + w.schedule + " is unknown; known are fixed, linear1cycle and linear1cycledrop";
  }
  o.schedule = *schedule;
  if (!parse_layers(w.bad_noise_layers, o.bad_noise_layers)) {
    return "--bad-noise-layers " + w.bad_noise_layers +
           " is not a list of layers: give numbers from 0 to 17, as in 16.17";
  }
  if (seed_given && w.seed < 0) {
    return "--seed " + std::to_string(w.seed) + " is out of range: it must be from 0 to " + std::to_string(INT64_MAX);
  }
  const auto precision = program::precision_named(w.precision);
  if (!precision) return program::wrong_precision(w.precision);
  o.precision = *precision;
  if (seed_given) o.seed = static_cast<std::uint64_t>(w.seed);
  return "";
}

std::string first_wrong_value(const CLI::App& app, const Options& o) {
  const program::Bound bounds[] = {{"--steps", o.steps, 1, kMost},
                                   {"--num-trainable-noise-layers", o.trainable_noise_layers, 0, kMostLayers},
                                   {"--duplicates", o.duplicates, 1, 1 << 20},
                                   {"--batch-size", o.batch_size, 1, 1 << 10},
                                   {"--fit-samples", o.fit_samples, 2, kMost},
                                   {"--threads", app.count("--threads") > 0 ? o.threads : 1, 1, 1024}};
  if (std::string wrong = program::first_outside(bounds); !wrong.empty()) return wrong;
  if (!std::isfinite(o.eps) || o.eps <= 0)
    return "--eps " + number_shown(o.eps) + " is out of range: it must be above 0";
  if (!std::isfinite(o.learning_rate) || o.learning_rate <= 0) {
    return "--learning-rate " + number_shown(o.learning_rate) + " is out of range: it must be above 0";
  }
  if (o.in_double && o.precision != program::Precision::Fp32) return "give --double or --precision, not both";
  if (o.input.empty()) return "--input is empty: name a picture or a folder of pictures";
  if (o.out.empty()) return "--out is empty: name a folder";
  return "";
}

}  // namespace

std::variant<Options, program::Answer> parse_options(int argc, const char* const* argv) {
  Options options;
  Words words;
  CLI::App app(
      "Searches the faces of a StyleGAN for those that downscale to the pictures given\n(PULSE, arXiv 2003.03808). "
      "Under `ullage run` it stays within the bytes it is given.",
      "ullage-pulse");
  app.get_formatter()->column_width(40);
  app.allow_extras();
  app.footer("Every option may also be written as the published run.py has it: -input_dir for --input-dir.");
  add_options(app, options, words);
  std::vector<std::string> given;  // last first: CLI11's vector overload expects reverse order
  for (int i = argc - 1; i > 0; --i) given.push_back(program::long_option(argv[i]));
  if (auto answer = program::answer_to(app, [&] { app.parse(given); })) return *answer;
  std::string wrong = take_words(words, app.count("--seed") > 0, options);
  if (wrong.empty()) wrong = first_wrong_value(app, options);
  if (!wrong.empty()) return program::wrong_use(app, wrong);
  return options;
}

}  // namespace ullage::pulse
