// SPDX-License-Identifier: Apache-2.0
#pragma once

// The words by which plain_words.h knows that memory ran out, as data. A sentence must have a phrase: memory and what
// befell it. The words around the phrase must speak of something that happened. Every word of that kind has a
// weight, and the weights of a sentence must add up to kEnough. To recognise a wording, add a word to a row.
//
// A pattern is a row of words, each matched by whole words of the text in lower case. In a pattern
//   a|b   either word                   fail*  any word that begins so       M   a word for memory (kMemory)
//   a|b?  either word, or none          _      any word without digits, or none
//   .     any word, or none             $      a size: "20 GiB", "24GB"      N   a word that denies (kDenials)
//   G     a word for a GPU (kGpu)

#include <cstdint>
#include <string_view>

namespace ullage::read::plain {

inline constexpr int kEnough = 3;

inline constexpr std::string_view kMemory = "memory|mem|ram|vram|gram|sram|dram|swap|heap|memoria|speicher";
inline constexpr std::string_view kDenials =
    "not|no|never|cannot|can't|cant|don't|dont|doesn't|doesnt|didn't|isn't|wasn't|won't|couldn't|hasn't|haven't|unable";

inline constexpr std::string_view kGpu =
    "gpu|gpus|card|cards|rtx*|gtx*|a100|h100|h200|b200|v100|p100|t4|l4|l40|l40s|a10|a10g|a40|a6000|a5000|a4000|1050ti|"
    "1060|1070|1080ti|1650|1660|2060|2070|2080|2080ti|3050|3060|3060ti|3070|3070ti|3080|3080ti|3090|3090ti|4050|4060|"
    "4060ti|4070|4070ti|4080|4090|5060|5060ti|5070|5070ti|5080|5090|mi250|mi300x|gb10";

// Whose memory ran out; for the last three, what else befell the program.
enum class Whose : std::uint8_t { Open, Device, Host, Killed, Spill, Growth };

struct Phrase {
  std::string_view pattern;
  int weight;
  Whose whose = Whose::Open;
};

inline constexpr Phrase kPhrases[] = {
    // Memory ran out.
    {"oom|ooms", 0},
    {"G|cuda|vram oom|ooms", 1},
    {"oomed|ooming|oom'd|oom'ed", 2},
    {"it|this|that|which|then|directly|always|immediately|still|just ooms|oom", 2},
    {"outofmemory*|memoryerror", 0},
    {"out of _ _ M", 0},
    {"run|runs|ran|running low|short|out on|of _ _ M", 3},
    {"N _ _ enough|sufficient|adequate _ _ M", 1},
    {"insufficient|inadequate _ _ M", 1},
    {"lack|lacks|lacking|shortage|short of|in _ _ M", 1},
    {"exceed*|exhaust*|overflow*|overrun* _ _ _ M", 1},
    {"M usage|use|size? _ _ exceed*|exhaust*|overflow*|insufficient|depleted|saturated|overloaded", 1},
    {"M usage|use? is|was|are|gets|got|becomes|became|goes|went _ full|maxed|filled|high|huge|up", 1},
    {"fill*|eat*|ate|consum*|use|uses|used|using|take*|taking|hog*|max* up|all|out|entire|whole _ _ _ M", 0},
    {"blow*|blew up _ _ M", 1},
    {"M usage|use|consumption? _ blow*|blew|explod*|explosion|skyrocket*|balloon*|spik*|overflow*|jump*", 1},
    {"too much|many|little|small _ _ M", 1},
    {"crazy|huge|massive|excessive|insane|enormous|abnormal*|unreasonabl*|absurd _ _ M usage|use|consumption|footprint",
     1},
    {"N _ fit* _ in|into|on|onto|within|inside _ _ M|G|device", 1},
    {"too big|large|much _ for|to fit? _ _ _ M|G|device", 1},
    {"requir*|need*|more _ _ M . . than _ available|free", 1},
    {"M limit|quota|cap|budget _ _ exceed*|reach*|hit|overrun", 2},
    {"exceed*|reach*|hit|hits|over|above _ _ _ M limit|limits|quota|cap|request", 2},
    {"M issue|issues|problem|problems|shortage|crash|crashes|error|errors|failure|starvation", 0},
    {"over memory", 1},
    {"$ _ M is|are _ required|needed", 2},
    // An allocation failed.
    {"fail*|unable|cannot|can't|couldn't|not|impossible|refus* _ _ alloc*|malloc|calloc|mmap|reserve|commit . . . . "
     "$|M|buffer|buffers|bytes|tensor|tensors|block|blocks|page|pages|arena|pool|workspace|array|vector|space",
     2},
    {"error|errors|failure|problem|problems|trouble _ _ alloc* . . . $|M|buffer|bytes|tensor|array", 2},
    {"tried|trying|tries|attempt* to allocate|alloc . . $", 1},
    {"alloc|allocate|allocation|allocations|allocating|malloc|calloc|mmap . . . . fail*|refus*|unsuccessful|denied", 3},
    // It grew.
    {"leak* _ _ M", 1, Whose::Growth},
    {"M _ leak*", 1, Whose::Growth},
    {"M usage|use|consumption|footprint? keep*|kept|continu*|constantly|steadily|gradually|slowly|only|just _ _ "
     "grow*|increas*|ris*|climb*|creep*|accumulat*|go*",
     1, Whose::Growth},
    {"M usage|use|consumption|footprint? grow*|grew|increas*|climb*|rises|rising|creep* . . "
     "over|each|every|until|linearly|indefinitely|continuously|unbounded*|forever|steadily|constantly|gradually",
     1, Whose::Growth},
    {"M usage|use? _ N _ _ release*|free*|clear*|reclaim*|return*|drop*|decreas*", 1, Whose::Growth},
    {"N _ _ release*|free*|clear*|reclaim*|releasing|freeing _ _ M", 1, Whose::Growth},
    // Something ended the process.
    {"kill*|terminat* _ by|for|due|because _ _ _ system|os|kernel|oom|M|cgroup|systemd|earlyoom|slurm|linux", 1,
     Whose::Killed},
    {"is|was|are|were|gets|get|got|being|been|just|be|simply|then _ killed", 1, Whose::Killed},
    {"system|os|kernel|linux|ubuntu|windows|docker|kubernetes|k8s|slurm|killer _ _ kills|killed|kill _ "
     "it|process|processes|job|script|training|python|container|pod|me|my|everything",
     1, Whose::Killed},
    // The driver of a card put bytes into the machine's memory.
    {"spill* _ _ _ shared|system|host|cpu _ M", 2, Whose::Spill},
    {"into|using|uses|use|to _ shared gpu|video|graphics memory", 1, Whose::Spill},
};

// Words of other languages, as bytes. The first letter is left out where it is often a capital one. Chinese and
// Japanese have no blanks between words. What torch, glibc and Windows print in the language of the machine is among
// them.
struct Foreign {
  std::string_view bytes;
  int weight;
  Whose whose;
};
inline constexpr Foreign kForeign[] = {
    {"爆显存", 2, Whose::Device},
    {"显存爆", 2, Whose::Device},
    {"显存不足", 2, Whose::Device},
    {"显存不够", 2, Whose::Device},
    {"显存不太够", 2, Whose::Device},
    {"显存溢出", 2, Whose::Device},
    {"溢出显存", 2, Whose::Device},
    {"显存泄", 2, Whose::Device},
    {"显存占满", 2, Whose::Device},
    {"显存满", 2, Whose::Device},
    {"显存一直", 2, Whose::Device},
    {"显存持续", 2, Whose::Device},
    {"超显存", 2, Whose::Device},
    {"超出显存", 2, Whose::Device},
    {"内存不足", 2, Whose::Host},
    {"内存不够", 2, Whose::Host},
    {"内存溢出", 2, Whose::Host},
    {"内存爆", 2, Whose::Host},
    {"爆内存", 2, Whose::Host},
    {"内存泄", 2, Whose::Host},
    {"内存占满", 2, Whose::Host},
    {"无法分配内存", 2, Whose::Host},
    {"页面文件太小", 2, Whose::Host},
    {"記憶體不足", 2, Whose::Open},
    {"显卡内存", 1, Whose::Device},
    {"メモリ不足", 2, Whose::Open},
    {"メモリが足り", 2, Whose::Open},
    {"メモリを確保でき", 2, Whose::Host},
    {"메모리 부족", 2, Whose::Open},
    {"메모리가 부족", 2, Whose::Open},
    {"메모리를 할당할 수 없", 2, Whose::Host},
    {"е хватает памят", 2, Whose::Open},
    {"е хватает видеопамят", 2, Whose::Device},
    {"е хватило памят", 2, Whose::Open},
    {"ехватк", 0, Whose::Open},
    {"едостаточно памят", 2, Whose::Open},
    {"едостаточно видеопамят", 2, Whose::Device},
    {"выделить память", 2, Whose::Host},
    {"memoria insuficiente", 3, Whose::Open},
    {"sin memoria", 3, Whose::Open},
    {"falta de memoria", 3, Whose::Open},
    {"asignar memoria", 3, Whose::Host},
    {"memória insuficiente", 3, Whose::Open},
    {"falta de memória", 3, Whose::Open},
    {"sem memória", 3, Whose::Open},
    {"mémoire insuffisante", 3, Whose::Open},
    {"manque de mémoire", 3, Whose::Open},
    {"plus de mémoire", 1, Whose::Open},
    {"allouer de la mémoire", 3, Whose::Host},
    {"genügend speicher", 3, Whose::Open},
    {"genügend arbeitsspeicher", 3, Whose::Host},
    {"genügend hauptspeicher", 3, Whose::Host},
    {"genug speicher", 3, Whose::Open},
    {"genug arbeitsspeicher", 3, Whose::Host},
    {"zu wenig speicher", 3, Whose::Open},
    {"speicher reicht nicht", 3, Whose::Open},
    {"memoria esaurita", 3, Whose::Open},
    {"yetersiz bellek", 3, Whose::Open},
};

// A line in Chinese, Japanese, Korean or Russian needs no verb that the tables know. These bytes show that it only
// speaks of a lack: if, avoid, prevent, reduce, may, did not happen, was solved, how often.
inline constexpr int kForeignLine = 3;
inline constexpr std::string_view kForeignSpokenOf[] = {
    "如果",    "若",       "避免",     "防止",   "减少",    "降低",   "以免",   "可能",
    "没有OOM", "没有 OOM", "没有出现", "未出现", "不会OOM", "不会爆", "解决了", "次数",
    "避け",    "防ぐ",     "場合",     "방지",   "경우",    "если",   "огда",   "избежать"};

// A word beside the phrase that says whose memory it was.
inline constexpr std::string_view kDevice =
    "G|cuda|vram|gram|video|graphics|device|hip|rocm|metal|vulkan|opencl|xpu|npu|tpu|mps|nvidia";
inline constexpr std::string_view kHost =
    "ram|host|cpu|system|swap|heap|machine|computer|laptop|pc|physical|server|container|pod|docker";

// A person speaks of an own run. It also counts, less, if another sentence of the text has it.
inline constexpr std::string_view kPerson = "i|i'm|i've|i'd|im|my|me";
inline constexpr int kPersonElsewhere = 1;

// Words around a phrase, not in it. Each row counts once in a sentence.
struct Around {
  std::string_view pattern;
  int weight;
};
// They show that it happened, to somebody.
inline constexpr Around kHappened[] = {
    {kPerson, 2},
    {"we|we're|we've|our|us|anyone|somebody|someone", 1},
    {"get|gets|got|getting|gotten|hit|hits|hitting|encounter*|experienc*|face|faced|facing|suffer*|throw*|threw|"
     "rais*|report*|trigger*|errored|caus*|lead|leads|leading|led|result*|crash*|fail*|die|dies|died|dying|killed|"
     "kills|abort*|end|ends|ended|run|runs|ran|running|went|goes|happen*|occur*|see|seeing|saw|say|says|said|show|"
     "shows|shown|"
     "exhibit*|meet|meets|met|produc*|keeps|kept|stuck|stopped|stops|freez*|froze|became|becomes",
     2},
    {"was|were|can't|cannot|couldn't|doesn't|won't|didn't|has|had", 1},
    {"there is|was|are|seems", 1},
    {"before being", 1},
    {"still|always|suddenly|randomly|eventually|immediately|consistently|again|often|frequently|sometimes|during|after|"
     "halfway|whenever|even|regardless|despite|when|while|keeps|already",
     1},
    {"help|issue|issues|bug|problem|problems|why|how|anyone|question|wrong|expected|unexpected*|weird|strange|please|"
     "sorry|thanks|tried",
     1},
    {"error|errors|exception|exceptions|fatal|failure|crash*|failed", 1},
};
// Particulars of a run. These count within the phrase too.
inline constexpr Around kParticulars[] = {{"$", 1}, {"G|m1|m2|m3|m4|colab|kaggle", 1}};
// kNever directly before the phrase, or kNone directly behind it: it did not happen, whatever else stands there.
inline constexpr std::string_view kNever = "no|never|without|not|0|zero|don't|didn't|doesn't|won't|isn't|wasn't";
inline constexpr std::string_view kNone = "0|zero";
// Before the phrase they show that it is only spoken of: a condition, an aim, a denial.
inline constexpr Around kSpokenOf[] = {
    {"if|when|whenever|unless|once you|your|users|user|the|it|there|a|an|memory|gpu", -4},
    {"if|unless", -2},
    {"until", -1},
    {"in case|cases of", -4},
    {"when|how does|do|to", -3},
    {"even if", 2},
    {"avoid*|prevent*|mitigat*|alleviat*|protect*|against|guard*|handle|handles|handling|recover*|fix|fixes|fixed|"
     "fixing|resolv*|solves|solved|eliminat*|reduce|reduces|reducing|detect*|catch*|diagnos*|troubleshoot*|debug*",
     -4},
    {"without|never|rather|instead|longer", -4},
    {"before it", -4},
    {"no|not|don't|doesn't|didn't|won't|isn't", -3},
    {"can|could not", 3},
    {"may|might|can|could|possibly|potentially|risk|risks|chance|prone|likely|possible|sometimes|otherwise", -3},
    {"should|must|ensure|please", -2},
    {"will", -1},
    {"you|your|users|user", -1},
};
// From the phrase's begin on to its end they show the same. "Could not" is what failed programs say.
inline constexpr Around kHedges[] = {{"may|might|can|could|potentially|possibly", -3}};
// Anywhere in the sentence they are the words of a guide.
inline constexpr Around kGuides[] = {
    {"recommended|recommend|consider|typically|usually|generally|default|extreme|conditions|situations|allows|enables|"
     "introduced|mechanism|mitigat*|designed|parameter|option|instead|users|such|rarely|seldom",
     -2},
    {"you|your", -1},
    {"by the? system? user|users|hand|administrator|admin|me", -4},
    {"sigterm|timeout|timed|connection|idle|cancelled|canceled", -4},
    {"disk|ip|port|inode|socket|descriptor|segmentation|corruption|illegal|invalid", -8},
    {"oom killer's", -3},
    {"oom|memory|leak check*|detect*|handling|handler|protection|score|profiler", -3},
    {"is|are the|a|an opposite|error|mechanism|technique|feature|tool|way|method|process", -3},
    {"for example|instance", -2},
};
inline constexpr int kLabel = 3;
// "classify: unable to allocate ...": a name and a colon directly before the phrase, as programs print it.
inline constexpr int kNamed = 1;
// As the first word of a sentence they show an order, a list of changes, or a level below an error.
inline constexpr Around kAtBegin[] = {
    {"use|set|try|reduce|lower|increase|decrease|enable|disable|add|added|adds|consider|note|make|ensure|pass|show|"
     "document|support*|allow*|fix*|improv*|remove*|update*|handle*|avoid*|prevent*|limit*|choose|keep|check|run|"
     "whether|default*|optional*|maximum|number|controls|returns|raise|raised",
     -2},
    {"info|debug|note|tip|warning|todo|hint", -2},
    // An error's label. Its words are a program's, and it did happen.
    {"error|fatal|critical|panic|exception|abort|aborted", kLabel},
};

}  // namespace ullage::read::plain
