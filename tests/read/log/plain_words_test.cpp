// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/log/plain_words.h"

#include "ullage/read/log/log.h"

#include <gtest/gtest.h>

#include <string>

namespace ullage::read {
namespace {

// Returns the form of the sentence that tells of a lack, or "" if none does.
std::string form_of(std::string_view text) {
  const auto found = find_plain_words(text);
  return found ? found->error.form : "";
}

// All of these sentences are made up.
TEST(PlainWords, SayWhoseMemoryItWas) {
  EXPECT_EQ(form_of("my training runs out of memory in the third epoch"), "plain");
  EXPECT_EQ(form_of("my training runs out of video memory in the third epoch"), "plain-device");
  EXPECT_EQ(form_of("the tool ran out of system RAM while it merged the shards"), "plain-host");
  EXPECT_EQ(form_of("my job got killed at step 200"), "plain-killed");
  EXPECT_EQ(form_of("the second command allocates up to 50GB before being terminated by OOM killer"), "plain-killed");
  EXPECT_EQ(form_of("it spills over into shared GPU memory"), "plain-spill");
  EXPECT_EQ(form_of("the GPU memory keeps growing after every epoch"), "plain-growth");
}

TEST(PlainWords, AreMatchedWhateverTheInflection) {
  for (const char* text :
       {"I keep hitting OOMs with two images", "above that it directly OOMS out, I use a batch of 2",
        "VRAM usage explodes at epoch 2, 24GB is not enough for me", "the model does not fit on my 3090",
        "ERROR: the allocation of 20 buffers was refused", "we can\xe2\x80\x99t allocate enough memory here",
        "INFO - GDAL signalled an error: err_no=2, msg='x.cpp, 258: cannot allocate 103862880 bytes'",
        "crazy memory usage and crashes when importing", "sort: unable to allocate hash table memory",
        "STATUS_OUT_OF_MEMORY error again", "it crashed on MMLU with \"Tried to allocate 31.50 GiB\""}) {
    EXPECT_NE(form_of(text), "") << text;
  }
}

TEST(PlainWords, ThatOnlySpeakOfALackDoNotCount) {
  for (const char* text :
       {"If the GPU runs out of memory, use a smaller tile.",
        "Larger values may lead to OOM errors.",
        "This option helps to avoid running out of memory on small cards.",
        "Fix a memory leak in the loader",
        "How to prevent OOM?",
        "the process was killed by the user",
        "The OOM killer is a mechanism of the kernel.",
        "step 20 loss 0.3 memory 7654 MiB",
        "ram-disk mounted",
        "fits well",
        "I never got OOM on my 3090 24GB.",
        "I do not run out of memory",
        "No more OOM errors for me, thanks, it runs on my 3090!",
        "my run is fine: no OOM, no error",
        "I was able to train without OOM on my 3090 24GB",
        "I did not see any memory leak in my run",
        "memory leak check: 0 leaks found, error count 0",
        "0 OOM errors occurred during the run",
        "Memory usage is up 3\xc3\x97 against last year.",
        "\xe8\xae\xad\xe7\xbb\x83\xe5\xae\x8c\xe6\x88\x90\xef\xbc\x8c\xe6\xb2\xa1\xe6\x9c\x89 OOM\xe3\x80\x82",
        "error: the process was killed by signal 15 (timeout)",
        "curl: (28) Error: connection was killed",
        "Error: failed to allocate disk space: no space left on device",
        "Error: IP allocation failed",
        "/* The allocation failed, so we return an error. */"}) {
    EXPECT_EQ(form_of(text), "") << text;
  }
}

TEST(PlainWords, GoOnInTheNextLine) {
  // The condition stands on the line before.
  EXPECT_EQ(form_of("// With this flag the loader reads in parts, unless it is in a case\n"
                    "// in which the program runs out of system memory when it starts"),
            "");
  EXPECT_NE(form_of("I have trained the network for three epochs and then my program\nran out of memory"), "");
}

TEST(PlainWords, OfALogsLineAreTheLinesOwn) {
  EXPECT_NE(form_of("INFO: the checkpoint was written to the folder if it did not exist there before\n"
                    "our job ran out of memory on the second epoch"),
            "");
  EXPECT_NE(form_of("Note that a checkpoint is written to the folder if one is there already\n\n"
                    "our job ran out of memory on the second epoch"),
            "");
  EXPECT_NE(form_of("(显存不足 pid=12) start\nour job ran out of memory here"), "");
}

TEST(PlainWords, TakeBoundedTime) {
  // Each of these took a minute and more.
  for (const char* word : {"oom ", "oom: ", "was killed ", "we got oom, "}) {
    std::string text;
    while (text.size() < 256 << 10) text += word;
    form_of(text);
  }
  std::string rules;
  while (rules.size() < 256 << 10) rules += std::string(60, '#') + "\n";
  EXPECT_EQ(form_of(rules), "");
  // So many phrases are weighed, and no more.
  const auto behind = [](int phrases) {
    std::string text;
    for (int i = 0; i < phrases; ++i) text += "no oom here\n";
    return form_of(text + "ERROR: not enough memory\n");
  };
  EXPECT_NE(behind(390), "");
  EXPECT_EQ(behind(400), "");
}

TEST(PlainWords, OfOtherLanguagesAreRead) {
  EXPECT_EQ(form_of("训练到一半就爆显存了"), "plain-device");
  EXPECT_EQ(form_of("运行时报错：内存不足"), "plain-host");
  EXPECT_EQ(form_of("学習中にメモリ不足になりました"), "plain");
  EXPECT_EQ(form_of("학습 중에 메모리가 부족합니다"), "plain");
  EXPECT_EQ(form_of("Ошибка: не удалось выделить память"), "plain-host");
  EXPECT_EQ(form_of("Недостаточно памяти для обучения"), "plain");
  EXPECT_EQ(form_of("Error: memoria insuficiente para entrenar"), "plain");
  EXPECT_EQ(form_of("如果显存不足，可以减小 batch"), "") << "if";
}

TEST(PlainWords, HaveFigures) {
  const auto found = find_plain_words("we get OOM errors trying to allocate ~86.9 GB on 80 GB GPUs");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->error.capacity, Bytes{80ull << 30});
  ASSERT_TRUE(found->error.requested);
  EXPECT_GT(*found->error.requested, Bytes{86ull << 30});
}

TEST(PlainWords, OfALongTextAreReadAtItsEnd) {
  const std::string padding(300 << 10, 'x');
  const std::string words = "ERROR: not enough memory\n";
  EXPECT_NE(form_of(padding + "\n" + words), "");
  EXPECT_EQ(form_of(words + padding), "");
}

TEST(PlainWords, YieldToAMessage) {
  const auto log = read_log(
      "I get OOM on my card\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB.", "test.log");
  ASSERT_TRUE(log.ok());
  ASSERT_EQ(log->errors.size(), 1u);
  EXPECT_EQ(log->errors[0].teller, trace::Teller::Cuda);
}

}  // namespace
}  // namespace ullage::read
