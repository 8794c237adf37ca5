"""What is wrong with a document as a whole, in Indonesian: one sentence for each fault that has nothing more to say."""

from __future__ import annotations

FAULTS = {
    "unreadable": "Berkas ini rusak atau tidak lengkap sehingga tidak dapat dibaca.",
    "encrypted": "PDF ini dilindungi kata sandi. Simpan tanpa kata sandi, lalu kirim kembali.",
    "no_text": "PDF ini hanya berisi gambar halaman tanpa teks, seperti hasil pemindai."
    " Mintalah PDF aslinya kepada pengirim.",
    "no_such_page": "PDF ini tidak memiliki halaman tersebut.",
    "too_many_pages": "PDF ini memiliki terlalu banyak halaman.",
    "too_much_text": "Dokumen ini memuat terlalu banyak teks.",
    "too_many_rows": "Tabel di dokumen ini memiliki terlalu banyak baris.",
    "not_recognised": "Dokumen ini tampaknya bukan jenis dokumen yang dipilih.",
    "table_missing": "Tabel yang wajib ada tidak ditemukan.",
    "field_missing": "Ada isian wajib yang tidak ditemukan.",
    "bad_value": "Ada nilai yang tidak dapat dibaca.",
    "unread_line": "Ada tulisan di antara baris tabel yang tidak dapat dipahami.",
    "unknown_lookup": "Ada tulisan yang tidak terdapat dalam daftar.",
    "check_failed": "Ada pemeriksaan yang tidak terpenuhi.",
    "no_embedded_invoice": "PDF ini tidak memuat faktur elektronik.",
    "unsupported_construct": "Faktur elektronik di dalam PDF ini memuat hal yang belum didukung.",
    "invalid_xml": "XML yang dihasilkan tidak sesuai dengan skemanya.",
    "took_too_long": "Membaca dokumen ini memakan waktu terlalu lama.",
    "too_much_memory": "Membaca dokumen ini membutuhkan terlalu banyak memori.",
    "parser_crashed": "Dokumen ini membuat program pembaca berhenti: berkasnya rusak atau sengaja dibuat demikian.",
}
