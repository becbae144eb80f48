// SPDX-License-Identifier: Apache-2.0
// What programs do to storages without autograd noticing. They grow, empty and exchange them, wrap memory that is not
// torch's, and keep a small view of a large base. One net asks for too much, catches the error and goes on.

#include "training.h"

#include <ATen/native/Resize.h>
#include <ATen/ops/from_blob.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <numeric>

namespace nets {
namespace {

// Learns a linear map from inputs whose storages were resized, emptied, exchanged or borrowed.
class Resize final : public Training {
 public:
  explicit Resize(Scale scale)
      : rows_(at_scale<std::int64_t>(scale, 1024, 4096, 16384)),
        map_(kWidth, kWidth),
        sgd_(std::make_shared<torch::optim::SGD>(map_->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9))),
        borrowed_(static_cast<std::size_t>(kWidth * kWidth)),
        emptied_(torch::randn({rows_, kWidth})),
        kept_(torch::randn({rows_ * kWidth})) {
    std::iota(borrowed_.begin(), borrowed_.end(), 0.0F);
    kept_view_ = torch::randn({rows_, kWidth}).narrow(0, rows_ / 2, 4);  // four rows keep the whole base alive
    add_model("map", map_.ptr());
    add_optimizer("sgd", map_.ptr(), sgd_);
    add_tensor("emptied", [this] { return emptied_; });
    add_tensor("kept", [this] { return kept_; });
    add_tensor("kept_view", [this] { return kept_view_; });
    add_tensor("borrowed", [this] { return lent(); });
  }

  double step() override {
    const torch::NoGradGuard no_grad;
    grow_and_shrink();
    empty_and_refill();
    exchange();
    kept_view_.mul_(0.5).add_(kept_.narrow(0, 0, kWidth));
    lent().mul_(0.75).add_(kept_view_[0]);
    return learn();
  }

 private:
  static constexpr std::int64_t kWidth = 256;

  // Returns a tensor over memory that the program itself allocated.
  Tensor lent() { return at::from_blob(borrowed_.data(), {kWidth, kWidth}, torch::kFloat32); }

  // Growing moves the contents to a larger allocation. Shrinking keeps that allocation.
  void grow_and_shrink() {
    const std::int64_t held = kept_.numel();
    kept_.resize_({2 * held});
    kept_.narrow(0, held, held).copy_(kept_.narrow(0, 0, held).flip(0));
    kept_.resize_({held});
  }

  // Does what sharded training does with its parameters: the storage has no bytes between two uses, and views stay
  // valid.
  void empty_and_refill() {
    const Tensor saved = emptied_ * 2;
    const Tensor view = emptied_.t();
    c10::StorageImpl* storage = emptied_.storage().unsafeGetStorageImpl();
    const std::size_t bytes = storage->nbytes();
    at::native::resize_bytes_cpu(storage, 0);
    at::native::resize_bytes_cpu(storage, bytes);
    view.copy_(saved.t() - torch::randn({kWidth, rows_}));
  }

  // A tensor takes the storage of another one. Its old storage stays alive only through a view, and dies with it.
  void exchange() {
    Tensor other = torch::randn({rows_, kWidth});
    const Tensor view_of_old = emptied_.narrow(0, 0, 2);
    emptied_.set_(other);
    emptied_.narrow(0, 0, 2).add_(view_of_old);
  }

  double learn() {
    const torch::AutoGradMode grad(true);
    sgd_->zero_grad();
    const Tensor x = torch::cat({emptied_, kept_.view({rows_, kWidth}), kept_view_}) * 0.1;
    const Tensor loss = torch::mse_loss(torch::tanh(map_(x)), torch::tanh(x.flip(1)));
    loss.backward();
    sgd_->step();
    return loss.item<float>();
  }

  const std::int64_t rows_;
  nn::Linear map_;
  const std::shared_ptr<torch::optim::SGD> sgd_;
  std::vector<float> borrowed_;
  Tensor emptied_;
  Tensor kept_;
  Tensor kept_view_;
};

// Asks once for more memory than any machine has. A failed request must leave everything else as it was.
class Catch final : public Training {
 public:
  explicit Catch(Scale scale)
      : width_(at_scale<std::int64_t>(scale, 256, 768, 1280)),
        net_(nn::Linear(width_, 2 * width_), nn::GELU(), nn::Linear(2 * width_, width_)),
        adam_(std::make_shared<torch::optim::Adam>(net_->parameters(), torch::optim::AdamOptions(1e-3))) {
    add_model("model", net_.ptr());
    add_optimizer("optimizer", net_.ptr(), adam_);
  }

  double step() override {
    adam_->zero_grad();
    const Tensor x = torch::randn({2 * width_, width_});
    const Tensor told = net_->forward(x);
    if (said_.empty()) ask_for_too_much();  // while a graph is alive
    const Tensor loss = torch::mse_loss(told, x);
    loss.backward();
    adam_->step();
    return loss.item<float>();
  }

 private:
  static constexpr std::int64_t kTooMany = std::int64_t{1} << 58;  // floats

  // Only the fact of an error must be equal with and without Ullage; the message differs by allocator.
  void ask_for_too_much() {
    try {
      const Tensor never = torch::empty({kTooMany});
      said_.push_back("no error: 2^60 bytes were served");
    } catch (const c10::Error&) {
      said_.push_back("a request for 2^60 bytes was refused");
    }
  }

  const std::int64_t width_;
  nn::Sequential net_;
  const std::shared_ptr<torch::optim::Adam> adam_;
};

}  // namespace

void add_storage_cases(Nets& nets) {
  nets["resize"] = {[](const Sizes& sizes) { return std::make_unique<Resize>(sizes.scale); }};
  nets["catch"] = {[](const Sizes& sizes) { return std::make_unique<Catch>(sizes.scale); }};
}

}  // namespace nets
