"""Invented goods and customers, with all the difficulties of real descriptions.

These are inch signs, quotes, ampersands, brackets, slashes, dashes that end up at the end of a line, figures that look
like quantities and prices, and words that are headings or labels elsewhere on the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Measure = Literal["weight", "volume", "length", "count", "service"]


@dataclass(frozen=True)
class Ware:
    description: str
    hs_code: str | None
    measure: Measure
    price: int  # approximate price in rupiah


# Every spelling the tax authority's list knows, and its code there. Upper and lower case mean the same.
UNIT_CODES = {
    "tonne": "UM.0001",
    "kg": "UM.0003",
    "g": "UM.0004",
    "l": "UM.0007",
    "m": "UM.0013",
    "inch": "UM.0014",
    "cm": "UM.0015",
    "yard": "UM.0016",
    "dozen": "UM.0017",
    "lusin": "UM.0017",
    "unit": "UM.0018",
    "set": "UM.0019",
    "sheet": "UM.0020",
    "lembar": "UM.0020",
    "piece": "UM.0021",
    "pcs": "UM.0021",
    "box": "UM.0022",
    "other": "UM.0033",
    "drum": "UM.0036",
    "carton": "UM.0037",
    "karton": "UM.0037",
    "roll": "UM.0039",
}

UNITS: dict[Measure, tuple[str, ...]] = {
    "weight": ("kg", "KG", "Kg", "g", "tonne", "Tonne"),
    "volume": ("l", "L", "drum", "Drum", "DRUM"),
    "length": ("m", "M", "cm", "yard", "Yard", "inch", "Inch", "roll", "ROLL"),
    "count": (
        "pcs", "PCS", "Pcs", "piece", "Piece", "unit", "Unit", "UNIT", "set", "Set", "SET", "box", "Box", "lusin",
        "Lusin", "dozen", "lembar", "Lembar", "sheet", "karton", "Karton", "carton", "CARTON",
    ),
    "service": ("unit", "Unit", "set", "other", "Other", "m", "kg"),
}  # fmt: skip

WARES = (
    Ware('Pipa Galvanis 1½" x 6 m (SNI 0039)', "730630", "count", 285_000),
    Ware('Keran Air 1/2" Kuningan "San-Ei"', "848180", "count", 96_000),
    Ware("Mur & Baut M10 x 50 mm, grade 8.8", "731815", "count", 4_200),
    Ware("Kabel NYM 3x2,5 mm² @ 50 m", "854449", "length", 18_500),
    Ware("Oli Total Quartz 7000 10W-40 (4 L)", "271019", "volume", 412_000),
    Ware("Kertas HVS A4 80 gsm - 500 lembar/rim", "480256", "count", 58_000),
    Ware("Beras Premium 'Pandan Wangi' 25 kg", "100630", "weight", 15_400),
    Ware("Kopi Arabika Gayo Grade 1", "090111", "weight", 145_000),
    Ware('Ban Luar 205/65 R15 94H "Enasave"', "401110", "count", 890_000),
    Ware('Laptop 14" Core i5-1235U/8GB/512GB', "847130", "count", 9_450_000),
    Ware("Cat Tembok Putih No. 101 (20 kg)", "320910", "volume", 72_000),
    Ware("Semen Portland Tipe I @50 kg", "2523", "weight", 1_500),
    Ware("Plywood 18 mm 1.220 x 2.440 mm", "441233", "count", 315_000),
    Ware("Besi Beton Ulir D13-12.000 mm", "721420", "weight", 10_800),
    Ware("Lampu LED 12 W 6.500 K, E27", "853950", "count", 38_500),
    Ware('Selang Hidrolik 3/8" R2AT (2-wire)', "400922", "length", 87_500),
    Ware("Bearing 6204-2RS/C3", "848210", "count", 42_000),
    Ware("V-Belt B-68 & pulley 2 alur", "401039", "count", 118_000),
    Ware('Kain Katun 40s lebar 58" (putih)', "520821", "length", 27_000),
    Ware("Sarung Tangan Nitril, size M, isi 100", "401519", "count", 64_000),
    Ware("Baterai AA 1,5 V isi 4", "850610", "count", 21_500),
    Ware("Minyak Goreng Sawit 18 L/jerigen", "151190", "volume", 17_800),
    Ware("Gula Pasir GKP (ICUMSA 200)", "1701", "weight", 14_200),
    Ware("Isolasi Listrik 0,13 mm x 19 mm x 20 m", "391910", "length", 8_900),
    Ware("Filter Udara P/N 17801-0C010", None, "count", 156_000),
    Ware('Sekrup Gypsum 6 x 1" (isi ±1.000)', "731814", "count", 47_000),
    Ware("Thinner ND Super; 200 L", "381400", "volume", 19_600),
    Ware("Meja Kerja 120 x 60 x 75 cm", "940330", "count", 1_250_000),
    Ware("Kursi Kantor Ergonomis 'Büro' + headrest", "940130", "count", 1_875_000),
    Ware('Pompa Sentrifugal 2" x 1½", total head 32 m', "841370", "count", 4_680_000),
    Ware("Gasket Graphite Ø 150 mm PN16", "848410", "count", 75_000),
    Ware("Kawat Las RB-26 Ø2,6 mm", "831110", "weight", 34_500),
    Ware("Tinta Printer 003 Hitam (65 ml)", "844399", "count", 88_000),
    Ware("Map Ordner Folio, Diskon Pameran", None, "count", 24_000),
    Ware("Asam Sulfat 98% (H2SO4), teknis", "280700", "weight", 9_200),
    Ware("Paku Beton 5 cm", "731700", "weight", 26_000),
    Ware("100% Cotton Combed 30s", "520512", "weight", 98_000),
    Ware("3M Masker N95 8210 (20/box)", "630790", "count", 412_000),
    Ware("Jasa Angkut Barang Jakarta–Surabaya (Jasa)", None, "service", 3_500_000),
    Ware("Instalasi & Commissioning Panel LV (Jasa)", None, "service", 7_250_000),
    Ware("(Jasa) Kalibrasi Timbangan 0-150 kg", None, "service", 450_000),
    Ware("Sewa Forklift 3 Ton/8 jam (Jasa)", None, "service", 1_350_000),
    Ware("Perawatan AC Split 1-2 PK (Jasa) per unit", None, "service", 185_000),
    Ware("Konsultasi Teknik (Jasa)", "998300", "service", 1_200_000),
)

EXTRAS = (
    "warna hitam,", "ukuran 12 x 24 x 3 cm,", "termasuk mur & ring;", "merk \"Simon\" -", "kemasan @ 12 pcs/karton,",
    "garansi 12 (dua belas) bulan,", "tahan suhu s/d 120 °C", "sesuai PO No. 4500123456", "tgl. 01/08/2025,",
    "lot #A-1774/B,", "toleransi ±0,05 mm,", "untuk mesin Type X-200 (lama & baru)", "harga Rp 12.500 per meter,",
    "kualitas ekspor -", "tekanan kerja 16 bar", "sertifikat 3.1 EN 10204,", "barang sesuai contoh", "1.000 jam pakai",
)  # fmt: skip

SELLERS = (
    ("PT SIMON SEJAHTERA ABADI", ("Jl. Kebon Sirih No. 17-19", "Jakarta Pusat 10340", "Telp. (021) 3190-5566")),
    ("PT SIMON MITRA NIAGA", ("Kawasan Industri Jababeka II Blok C/12", "Cikarang, Bekasi 17530")),
    ("PT SIMON & PUTRA TEKNIK", ("Ruko Mangga Dua Square Blok F No. 8, Lt. 2",)),
)

BUYERS = (
    ("PT Maju Bersama Tbk.", "purchasing@majubersama.co.id"),
    ("CV Berkah & Rekan", "cv.berkah_rekan@gmail.com"),
    ('Toko "Sinar Terang"', None),
    ("PT Total Karya Nusantara", "ap-invoice@totalkarya.com"),
    ("Koperasi Karyawan 'Sejahtera' (KOPKAR)", None),
    ("PT Astra-Graha Indotama, Cabang Surabaya", "finance+ap@astragraha.co.id"),
    ("UD Tani Makmur 88", None),
)

ADDRESSES = (
    "Jl. Jend. Sudirman Kav. 52-53", "Gedung Menara Sentosa Lt. 12", "RT 005/RW 003, Kel. Senayan",
    "Jakarta Selatan 12190", "Jl. Raya Rungkut Industri No. 21", "Surabaya 60293, Jawa Timur",
    "Komp. Pergudangan Margomulyo B-07", "Jl. Gatot Subroto 45A", "Kec. Kebayoran Baru", "Bandung 40262",
    "Kawasan Berikat Nusantara (KBN)",
)  # fmt: skip
