// SPDX-License-Identifier: Apache-2.0
// Makes cutouts of a picture. test_cutouts_in_cpp.py compares them with the reference.
//
// usage: vqgan_clip_cutouts IN OUT SIZES CASE...
// SIZES are the sizes of parts, in one argument: "1 3". A CASE is options of ullage-vqgan-clip in one argument:
// "--seed 3 --num-cuts 8".
//
// IN   picture (1,3,H,W)
//      weight (N,3,side,side)        the weight of each number of the cutouts, in the picture's dtype
//      <i>/draws/<name>              is used for case i instead of drawing
// OUT  <i>/draws/<name>              drawn for case i
//      <i>/after (4)                 what the generator draws next
//      <i>/all/<name>                the draws of all cutouts
//      <i>/cuts, <i>/gradient        the gradient of the weighted sum at the picture
//      <i>/parts/<n>/cuts, gradient  the same, n cutouts at a time
// Booleans are written as bytes. Empty tensors are omitted.
#include "torch_program/tensor_file.h"
#include "ullage/train/as_tensor.h"
#include "vqgan_clip/cutouts.h"

#include <ATen/Context.h>
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <sstream>

namespace ullage::vqgan_clip {
namespace {

using at::Tensor;

Options options_of(const std::string& text) {
  std::istringstream stream("cutouts --prompts any " + text);
  const std::vector<std::string> words(std::istream_iterator<std::string>(stream), {});
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  const auto parsed = parse_options(static_cast<int>(argv.size()), argv.data());
  if (const auto* options = std::get_if<Options>(&parsed)) return *options;
  contract_broken(text.c_str(), __FILE__, __LINE__);
}

Draws given(const std::shared_ptr<const read::Weights>& file, const std::string& prefix) {
  Draws draws;
  for (const auto& tensor : file->tensors()) {
    if (tensor.name.starts_with(prefix)) draws[tensor.name.substr(prefix.size())] = train::as_tensor(file, tensor.name);
  }
  return draws;
}

void put(Draws& out, const std::string& prefix, const Draws& draws) {
  for (const auto& [name, tensor] : draws) {
    if (tensor.numel() > 0) out[prefix + name] = tensor.scalar_type() == at::kBool ? tensor.to(at::kByte) : tensor;
  }
}

struct Case {
  Tensor picture, weight;
  Options options;
  Cutouts cutouts;

  Case(const Draws& in, const std::string& text)
      : picture(in.at("picture")),
        weight(in.at("weight")),
        options(options_of(text)),
        cutouts(weight.size(2), options.cuts, options.cut_method, options.cut_power, options.augments) {}

  Draws drawn(Draws& out, const std::string& name) const {
    at::manual_seed(options.seed.value());
    const Draws draws = cutouts.draw(picture.size(2), picture.size(3));
    put(out, name + "all/", cutouts.draw_all(picture.size(2), picture.size(3)));
    out[name + "after"] = at::rand({4}, at::kFloat);
    put(out, name + "draws/", draws);
    return draws;
  }

  // Writes the cutouts of these draws and the gradient, computed `at_a_time` cutouts at once.
  void look(Draws& out, const std::string& name, const Draws& draws, std::int64_t at_a_time) const {
    std::vector<Tensor> cuts;
    const Tensor leaf = picture.clone().requires_grad_();
    for (std::int64_t first = 0; first < cutouts.count(); first += at_a_time) {
      const std::int64_t count = std::min(at_a_time, cutouts.count() - first);
      cuts.push_back(cutouts.apply(leaf, at_a_time < cutouts.count() ? part_of(draws, first, count) : draws));
      (cuts.back() * weight.narrow(0, first, count)).sum().backward();
      cuts.back() = cuts.back().detach();
    }
    out[name + "cuts"] = at::cat(cuts);
    out[name + "gradient"] = leaf.grad();
  }
};

Status run(const std::string& in, const std::string& out_path, const std::vector<std::int64_t>& sizes,
           const std::vector<std::string>& texts) {
  auto opened = read::Weights::open(in);
  if (!opened) return opened.error();
  const auto file = std::make_shared<const read::Weights>(std::move(*opened));
  Draws out;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string name = std::to_string(i) + "/";
    const Case one(given(file, ""), texts[i]);
    Draws draws = given(file, name + "draws/");
    if (draws.empty()) draws = one.drawn(out, name);
    one.look(out, name, draws, one.cutouts.count());
    for (const std::int64_t size : sizes) {
      one.look(out, name + "parts/" + std::to_string(size) + "/", draws, size);
    }
  }
  return torch_program::write_tensors(out_path, out);
}

}  // namespace
}  // namespace ullage::vqgan_clip

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  at::set_num_threads(1);
  std::istringstream words(argv[3]);
  const std::vector<std::int64_t> sizes(std::istream_iterator<std::int64_t>(words), {});
  const ullage::Status done = ullage::vqgan_clip::run(argv[1], argv[2], sizes, {argv + 4, argv + argc});
  if (done) return 0;
  std::cerr << done.error().text() << "\n";
  return 3;
}
