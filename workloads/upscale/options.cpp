// SPDX-License-Identifier: Apache-2.0
#include "upscale/options.h"

#include "program/option_words.h"
#include "upscale/tile.h"

#include <CLI/CLI.hpp>

#include <vector>

namespace ullage::upscale {
namespace {

void add_options(CLI::App& app, Options& o, bool rehearsal) {
  app.add_option("--input", o.input, "a picture (PNG or JPEG), or a folder of them")->required(!rehearsal);
  app.add_option("--model", o.model, "weights of ESRGAN or Real-ESRGAN (.pth, x4 or x2)")->required();
  app.add_option("--out", o.out, "picture to write (PNG); a folder if --input is one")->required(!rehearsal);
  app.add_option("--scale", o.scale, "2 or 4: refuse a model of another scale (default: the model's)");
  app.add_option("--tile", o.tile, "rows of a tile, which is as wide as the picture\n(default: chosen from --memory)");
  app.add_option("--threads", o.threads, "threads of torch (default: torch decides)");
  app.add_flag("--force", o.force, "replace pictures that are there");
  app.add_flag("--quiet", o.quiet, "print errors only");
  app.add_flag("--double", o.in_double, "compute in float64")->group("For tests");
  app.add_option("--dump", o.dump, "file for the picture as the network gives it; one picture")->group("For tests");
}

std::string first_wrong_value(const CLI::App& app, const Options& o, bool rehearsal) {
  const auto given = [&](const char* name) { return app.count(name) > 0; };
  const program::Bound bounds[] = {{"--tile", given("--tile") ? o.tile : 1, 1, kMostRows},
                                   {"--threads", given("--threads") ? o.threads : 1, 1, 1024}};
  if (std::string wrong = program::first_outside(bounds); !wrong.empty()) return wrong;
  if (given("--scale") && o.scale != 2 && o.scale != 4) {
    return "--scale " + std::to_string(o.scale) + " is not possible: give 2 or 4";
  }
  if (o.model.empty()) return "--model is empty: name a file of weights";
  if (!rehearsal && o.input.empty()) return "--input is empty: name a picture or a folder of pictures";
  if (!rehearsal && o.out.empty()) return "--out is empty: name a picture to write, or a folder";
  return "";
}

}  // namespace

std::variant<Options, program::Answer> parse_options(int argc, const char* const* argv, bool rehearsal) {
  Options options;
  CLI::App app(
      "Makes pictures 2 or 4 times as large by a network of ESRGAN or Real-ESRGAN.\n"
      "Under `ullage run` it stays within the bytes it is given.",
      "ullage-upscale");
  app.get_formatter()->column_width(32);
  app.allow_extras();
  add_options(app, options, rehearsal);
  std::vector<std::string> given;  // last first: CLI11's vector overload expects reverse order
  for (int i = argc - 1; i > 0; --i) given.push_back(program::long_option(argv[i]));
  if (auto answer = program::answer_to(app, [&] { app.parse(given); })) return *answer;
  const std::string wrong = first_wrong_value(app, options, rehearsal);
  if (!wrong.empty()) return program::wrong_use(app, wrong);
  return options;
}

}  // namespace ullage::upscale
